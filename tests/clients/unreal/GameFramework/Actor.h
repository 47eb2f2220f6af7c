#pragma once
class UGameInstance;
class AActor {
public:
  UGameInstance *GetGameInstance() const { return nullptr; }
};
