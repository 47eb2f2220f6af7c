#pragma once
#include "CoreMinimal.h"
class AActor;
class UActorComponent {
public:
  using Super = UActorComponent;
  virtual ~UActorComponent() = default;
  virtual void BeginPlay() {}
  virtual void EndPlay(const EEndPlayReason::Type) {}
  AActor *GetOwner() const { return nullptr; }
};
