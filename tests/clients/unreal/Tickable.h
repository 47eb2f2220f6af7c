#pragma once
#include "CoreMinimal.h"
class FTickableGameObject {
public:
  virtual ~FTickableGameObject() = default;
  virtual void Tick(float) = 0;
  virtual TStatId GetStatId() const = 0;
};
