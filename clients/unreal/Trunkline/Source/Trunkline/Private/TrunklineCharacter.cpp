#include "TrunklineCharacter.h"

#include "Engine/GameInstance.h"
#include "GameFramework/Actor.h"
#include "TrunklineSubsystem.h"
#include "tryll.hpp"

struct UTrunklineCharacter::FState
{
	tryll::Agent Agent;
	bool bTalking = false;
};

UTrunklineCharacter::UTrunklineCharacter() : State(MakeUnique<FState>()) {}
UTrunklineCharacter::~UTrunklineCharacter() = default;

UTrunklineSubsystem* UTrunklineCharacter::Subsystem() const
{
	const AActor* Owner = GetOwner();
	UGameInstance* Game = Owner ? Owner->GetGameInstance() : nullptr;
	return Game ? Game->GetSubsystem<UTrunklineSubsystem>() : nullptr;
}

void UTrunklineCharacter::BeginPlay()
{
	Super::BeginPlay();
	UTrunklineSubsystem* Server = Subsystem();
	if (!Server) return;
	Server->OnConnected.AddDynamic(this, &UTrunklineCharacter::Make);
	if (Server->GetClient() && Server->GetClient()->connection() == tryll::Connection::Ready) Make(false);
}

void UTrunklineCharacter::EndPlay(const EEndPlayReason::Type Reason)
{
	if (UTrunklineSubsystem* Server = Subsystem()) Server->OnConnected.RemoveDynamic(this, &UTrunklineCharacter::Make);
	State->Agent.listen({});
	State->Agent.destroy();
	Super::EndPlay(Reason);
}

void UTrunklineCharacter::Make(bool)
{
	tryll::ToolCallParams Choose;
	for (const auto& Tool : Tools)
	{
		Choose.tools.push_back({TCHAR_TO_UTF8(*Tool.Key), TCHAR_TO_UTF8(*Tool.Value), {}});
	}
	Choose.notify_client = true;
	Choose.no_tool_called_exit = "answer";
	tryll::GraphDescription Graph;
	if (!Choose.tools.empty()) Graph.nodes.push_back({"tools", Choose});
	if (VoiceModel.IsEmpty())
	{
		tryll::GenerateParams Answer;
		Answer.system_prompt = TCHAR_TO_UTF8(*SystemPrompt);
		Answer.stream = true;
		Graph.nodes.push_back({"answer", Answer});
	}
	else
	{
		tryll::GenerateAndSpeakParams Answer;
		Answer.system_prompt = TCHAR_TO_UTF8(*SystemPrompt);
		Answer.tts_model_name = TCHAR_TO_UTF8(*VoiceModel);
		Graph.nodes.push_back({"answer", Answer});
	}
	Graph.start_node = Graph.nodes.front().name;
	tryll::AgentOptions Options;
	Options.default_model = TCHAR_TO_UTF8(*Model);
	State->bTalking = false;
	const TWeakObjectPtr<UTrunklineCharacter> Weak(this);
	Subsystem()->GetClient()->create_agent(Graph, Options).then([Weak](const tryll::Result<tryll::Agent>& Made) {
		UTrunklineCharacter* Self = Weak.Get();
		if (!Self)
		{
			Made->destroy();
			return;
		}
		Self->State->Agent = *Made;
		if (!Made) Self->OnFailed.Broadcast(UTF8_TO_TCHAR(Made.error.message.c_str()));
	});
}

bool UTrunklineCharacter::Say(const FString& Text)
{
	if (!State->Agent || State->bTalking) return false;
	State->bTalking = true;
	const TWeakObjectPtr<UTrunklineCharacter> Weak(this);
	tryll::TurnCallbacks Hear;
	Hear.text = [Weak](const std::string& Piece) {
		if (UTrunklineCharacter* Self = Weak.Get()) Self->OnText.Broadcast(UTF8_TO_TCHAR(Piece.c_str()));
	};
	Hear.tool_call = [Weak](const tryll::ToolCall& Call) {
		if (UTrunklineCharacter* Self = Weak.Get())
			Self->OnTool.Broadcast(UTF8_TO_TCHAR(Call.name.c_str()), UTF8_TO_TCHAR(Call.arguments_json.c_str()));
	};
	Hear.sound = [Weak](const tryll::Sound& Sound) {
		UTrunklineCharacter* Self = Weak.Get();
		if (!Self) return;
		TArray<uint8> Pcm;
		Pcm.Append(reinterpret_cast<const uint8*>(Sound.samples.data()), static_cast<int32>(2 * Sound.samples.size()));
		Self->OnSound.Broadcast(Pcm, static_cast<int32>(Sound.sample_rate), Sound.channels);
	};
	Hear.done = [Weak](const tryll::Result<tryll::TurnResult>& Result) {
		UTrunklineCharacter* Self = Weak.Get();
		if (!Self) return;
		Self->State->bTalking = false;
		if (Result) Self->OnDone.Broadcast(UTF8_TO_TCHAR(Result->text.c_str()));
		else Self->OnFailed.Broadcast(UTF8_TO_TCHAR(Result.error.message.c_str()));
	};
	State->Agent.send(TCHAR_TO_UTF8(*Text), Hear);
	return true;
}

void UTrunklineCharacter::Interrupt()
{
	State->Agent.cancel();
}
