#include "TrunklineSubsystem.h"

#include "tryll.hpp"

DEFINE_LOG_CATEGORY_STATIC(LogTrunkline, Log, All);

struct UTrunklineSubsystem::FState
{
	// The client goes first.
	tryll::ManagedServer Server;
	std::unique_ptr<tryll::Client> Client;
};

UTrunklineSubsystem::UTrunklineSubsystem() : State(MakeUnique<FState>()) {}
UTrunklineSubsystem::~UTrunklineSubsystem() = default;

void UTrunklineSubsystem::Connect(const FString& Host, int32 Port, bool bRealModels)
{
	tryll::Options Options;
	Options.host = TCHAR_TO_UTF8(*Host);
	Options.port = static_cast<std::uint16_t>(Port);
	if (bRealModels)
	{
		Options.config.inference_engine = tryll::InferenceEngine::LlamaCpp;
		Options.config.embedding_engine = tryll::InferenceEngine::LlamaCpp;
		Options.config.stt_engine = tryll::InferenceEngine::SherpaOnnx;
		Options.config.tts_engine = tryll::InferenceEngine::SherpaOnnx;
		Options.config.allow_auto_model_downloading = true;
	}
	State->Client = std::make_unique<tryll::Client>(Options);
	State->Client->on_connected = [this](bool bAgain) { OnConnected.Broadcast(bAgain); };
	State->Client->on_lost = [this](const tryll::Error& Error, bool) { OnLost.Broadcast(UTF8_TO_TCHAR(Error.message.c_str())); };
	State->Client->connect().then([this](const tryll::Result<tryll::Nothing>& Result) {
		if (!Result) OnLost.Broadcast(UTF8_TO_TCHAR(Result.error.message.c_str()));
	});
}

bool UTrunklineSubsystem::StartServer(const FString& Program, bool bRealModels)
{
	tryll::ServerOptions Options;
	if (!Program.IsEmpty())
	{
		Options.program = TCHAR_TO_UTF8(*Program);
		Options.arguments.clear();
	}
	if (const tryll::Error Error = State->Server.start(Options))
	{
		UE_LOG(LogTrunkline, Error, TEXT("%s"), UTF8_TO_TCHAR(Error.message.c_str()));
		return false;
	}
	Connect(UTF8_TO_TCHAR(State->Server.host().c_str()), State->Server.port(), bRealModels);
	return true;
}

tryll::Client* UTrunklineSubsystem::GetClient() const
{
	return State->Client.get();
}

void UTrunklineSubsystem::Deinitialize()
{
	State->Client.reset();
	State->Server.stop();
	Super::Deinitialize();
}

void UTrunklineSubsystem::Tick(float)
{
	if (State->Client) State->Client->update();
}

TStatId UTrunklineSubsystem::GetStatId() const
{
	RETURN_QUICK_DECLARE_CYCLE_STAT(UTrunklineSubsystem, STATGROUP_Tickables);
}
