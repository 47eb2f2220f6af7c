#pragma once

#include "Components/ActorComponent.h"
#include "CoreMinimal.h"

#include "TrunklineCharacter.generated.h"

class UTrunklineSubsystem;

DECLARE_DYNAMIC_MULTICAST_DELEGATE_OneParam(FTrunklineText, const FString&, Text);
DECLARE_DYNAMIC_MULTICAST_DELEGATE_TwoParams(FTrunklineTool, const FString&, Name, const FString&, ArgumentsJson);
DECLARE_DYNAMIC_MULTICAST_DELEGATE_ThreeParams(
	FTrunklineSound, const TArray<uint8>&, Pcm, int32, SampleRate, int32, Channels);

/** A character that talks. It is made when the subsystem has connected, and again whenever it has connected again. */
UCLASS(ClassGroup = (Trunkline), meta = (BlueprintSpawnableComponent))
class TRUNKLINE_API UTrunklineCharacter : public UActorComponent
{
	GENERATED_BODY()

public:
	/** Who it is. */
	UPROPERTY(EditAnywhere, BlueprintReadWrite, Category = "Trunkline", meta = (MultiLine = true))
	FString SystemPrompt;

	UPROPERTY(EditAnywhere, BlueprintReadWrite, Category = "Trunkline")
	FString Model = TEXT("mock");

	/** What it can do, by name, with a description for the model. */
	UPROPERTY(EditAnywhere, BlueprintReadWrite, Category = "Trunkline")
	TMap<FString, FString> Tools;

	/** A model that speaks; empty: it is silent. */
	UPROPERTY(EditAnywhere, BlueprintReadWrite, Category = "Trunkline")
	FString VoiceModel;

	/** False: it is not there, or still talking. */
	UFUNCTION(BlueprintCallable, Category = "Trunkline")
	bool Say(const FString& Text);

	UFUNCTION(BlueprintCallable, Category = "Trunkline")
	void Interrupt();

	UPROPERTY(BlueprintAssignable, Category = "Trunkline")
	FTrunklineText OnText;

	UPROPERTY(BlueprintAssignable, Category = "Trunkline")
	FTrunklineTool OnTool;

	/** 16-bit samples, little-endian. */
	UPROPERTY(BlueprintAssignable, Category = "Trunkline")
	FTrunklineSound OnSound;

	/** The whole answer. */
	UPROPERTY(BlueprintAssignable, Category = "Trunkline")
	FTrunklineText OnDone;

	UPROPERTY(BlueprintAssignable, Category = "Trunkline")
	FTrunklineText OnFailed;

	virtual void BeginPlay() override;
	virtual void EndPlay(const EEndPlayReason::Type Reason) override;

	UTrunklineCharacter();
	virtual ~UTrunklineCharacter() override;

private:
	struct FState;
	TUniquePtr<FState> State;

	UTrunklineSubsystem* Subsystem() const;

	UFUNCTION()
	void Make(bool bAgain);
};
