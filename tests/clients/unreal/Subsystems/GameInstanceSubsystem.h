#pragma once
#include "CoreMinimal.h"
class UGameInstanceSubsystem {
public:
  using Super = UGameInstanceSubsystem;
  virtual ~UGameInstanceSubsystem() = default;
  virtual void Deinitialize() {}
};
