#pragma once
class UGameInstance {
public:
  template <class T> T *GetSubsystem() { return nullptr; }
};
