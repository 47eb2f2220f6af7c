#pragma once

#include "CoreMinimal.h"
#include "Subsystems/GameInstanceSubsystem.h"
#include "Tickable.h"

#include "TrunklineSubsystem.generated.h"

namespace tryll
{
class Client;
}

DECLARE_DYNAMIC_MULTICAST_DELEGATE_OneParam(FTrunklineConnected, bool, bAgain);
DECLARE_DYNAMIC_MULTICAST_DELEGATE_OneParam(FTrunklineLost, const FString&, Reason);

/** The game's one connection. Its callbacks come in the game's thread, once for each frame. */
UCLASS()
class TRUNKLINE_API UTrunklineSubsystem : public UGameInstanceSubsystem, public FTickableGameObject
{
	GENERATED_BODY()

public:
	/** Connects to a server that is there. Characters are made when it has. */
	UFUNCTION(BlueprintCallable, Category = "Trunkline")
	void Connect(const FString& Host = TEXT("127.0.0.1"), int32 Port = 9100, bool bRealModels = false);

	/** Starts a server that ends with the game, and connects. Blocks until it is ready. False: see the log. */
	UFUNCTION(BlueprintCallable, Category = "Trunkline")
	bool StartServer(const FString& Program, bool bRealModels = false);

	UPROPERTY(BlueprintAssignable, Category = "Trunkline")
	FTrunklineConnected OnConnected;

	UPROPERTY(BlueprintAssignable, Category = "Trunkline")
	FTrunklineLost OnLost;

	/** Null before `Connect`. */
	tryll::Client* GetClient() const;

	virtual void Deinitialize() override;
	virtual void Tick(float DeltaTime) override;
	virtual TStatId GetStatId() const override;

	UTrunklineSubsystem();
	virtual ~UTrunklineSubsystem() override;

private:
	struct FState;
	TUniquePtr<FState> State;
};
