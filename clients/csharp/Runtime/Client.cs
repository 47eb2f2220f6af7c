using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Trunkline.Tryll
{
    /// <summary>A session on a server.</summary>
    /// <remarks>
    /// A client, and all that it gave, belongs to one thread at a time. That thread calls <see cref="Update"/>, once
    /// for each frame that is drawn, and everything happens there: callbacks are called, and tasks end. Where nobody
    /// draws, <see cref="Wait{T}(Task{T})"/> does it while it waits. An `await` without either never ends. What is not
    /// said of a call here is said in clients/README.md: all clients have the same shape.
    /// </remarks>
    public sealed class Client : IDisposable
    {
        /// <summary>How often it is looked whether another client has downloaded a model.</summary>
        const double LookSeconds = 1;

        readonly Session session;

        public Client(ClientOptions options = null)
        {
            session = new Session(options ?? new ClientOptions());
            session.OnConnected = again => Everybody.Hears(Heard(Connected, each => ((Action<bool>)each)(again)));
            session.OnLost = (error, isFinal) =>
                Everybody.Hears(Heard(Lost, each => ((Action<TryllException, bool>)each)(error, isFinal)));
        }

        /// <summary>A session is there and configured; true: in place of one that was lost.</summary>
        public event Action<bool> Connected;

        /// <summary>It is lost. It is tried again, unless the second value is true: then every call fails until
        /// `Connect` is called.</summary>
        public event Action<TryllException, bool> Lost;

        public Connection Connection { get { return session.Connection; } }
        public ulong SessionId { get { return session.SessionId; } }
        public IList<string> Extensions { get { return session.Extensions.AsReadOnly(); } }

        public bool HasExtension(string name)
        {
            return session.HasExtension(name);
        }

        /// <summary>Tries once.</summary>
        public Task Connect()
        {
            return session.Connect();
        }

        /// <summary>Delivers what has come, and gives the number of frames. Never blocks.</summary>
        public int Update()
        {
            return session.Update();
        }

        /// <summary>Waits until something comes, or for so long, and delivers it.</summary>
        public int Wait(double seconds)
        {
            session.Sleep(seconds);
            return session.Update();
        }

        /// <summary>Waits for a task of this client, and delivers what comes meanwhile. For programs that draw
        /// nothing.</summary>
        /// <exception cref="TryllException">It came to that.</exception>
        public void Wait(Task task)
        {
            // First what is there already: the task may be over by that.
            while (!task.IsCompleted)
                if (session.Update() == 0 && !task.IsCompleted && !session.Sleep(double.MaxValue) && !task.IsCompleted)
                    throw new TryllException(ErrorCode.ConnectionDropped, "There is no connection.");
            task.GetAwaiter().GetResult();
        }

        /// <summary>The same, and gives what the task came to.</summary>
        public T Wait<T>(Task<T> task)
        {
            Wait((Task)task);
            return task.Result;
        }

        /// <summary>Ends the session and all that it has; whoever waits gets 1002.</summary>
        public void Close()
        {
            session.Close();
        }

        public void Dispose()
        {
            Close();
        }

        /// <summary>Another configuration, for what is created from then on.</summary>
        public Task Configure(ConfigureSessionRequest config, CancellationToken token = default(CancellationToken))
        {
            config.ProtocolVersion = Protocol.Version;
            return session.Ask<ConfigureSessionResponse, bool>(config, session.Options.RequestSeconds, answer =>
            {
                session.Options.Config = config;
                return true;
            }, null, token);
        }

        public Task<Agent> CreateAgent(
            GraphDescription graph, AgentOptions options = null, CancellationToken token = default(CancellationToken))
        {
            options = options ?? new AgentOptions();
            var request = new CreateAgentRequest
            {
                Graph = graph,
                DefaultModelName = options.DefaultModel,
                EnableDiagnostics = options.Diagnostics,
                MaxStepsPerTurn = options.MaxSteps
            };
            return session.Ask<CreateAgentResponse, Agent>(
                request, session.Options.ModelSeconds, made => session.Add(made), options.Progress, token);
        }

        /// <summary>The `RequestId` is the client's own.</summary>
        public Task<VoiceInput> CreateVoiceInput(
            CreateVoiceInputRequest request, Action<DownloadProgress> progress = null,
            CancellationToken token = default(CancellationToken))
        {
            return session.Ask<CreateVoiceInputResponse, VoiceInput>(
                request, session.Options.ModelSeconds, made => session.Add(made), progress, token);
        }

        /// <summary>Strings that nodes use. A file is of the kind that its name tells, unless another one is
        /// named.</summary>
        public Task CreateStorage(
            string name, IEnumerable<string> strings, StorageOptions options = null,
            CancellationToken token = default(CancellationToken))
        {
            options = options ?? new StorageOptions();
            var request = new CreateStringStorageRequest { Name = name, FilePath = options.FilePath };
            request.Strings.AddRange(strings);
            request.Keys.AddRange(options.Keys);
            if (options.Kind.HasValue)
                request.Kind = options.Kind.Value;
            else if (options.FilePath.EndsWith(".mm.json", StringComparison.Ordinal))
                request.Kind = StringStorageKind.Multimap;
            else if (options.FilePath.EndsWith(".json", StringComparison.Ordinal) || request.Keys.Count > 0)
                request.Kind = StringStorageKind.Map;
            return Asked<CreateStringStorageResponse>(request, session.Options.RequestSeconds, token);
        }

        /// <summary>Agents that use it keep it.</summary>
        public Task DestroyStorage(string name)
        {
            return Asked<Ack>(new DestroyStringStorageRequest { Name = name }, session.Options.RequestSeconds);
        }

        /// <summary>Strings that are found by their meaning.</summary>
        public Task<CreateEmbeddedStringStorageResponse> CreateEmbeddedStorage(
            string name, IEnumerable<string> strings, EmbeddedStorageOptions options = null,
            CancellationToken token = default(CancellationToken))
        {
            options = options ?? new EmbeddedStorageOptions();
            var request = new CreateEmbeddedStringStorageRequest
            {
                Name = name,
                EmbeddingModel = options.EmbeddingModel,
                ConfigPath = options.ConfigPath,
                RecordsJson = options.RecordsJson,
                MemoryPath = options.MemoryPath
            };
            request.Strings.AddRange(strings);
            return session.Ask<CreateEmbeddedStringStorageResponse, CreateEmbeddedStringStorageResponse>(
                request, session.Options.ModelSeconds, made => made, options.Progress, token);
        }

        /// <summary>Agents that use it keep it.</summary>
        public Task DestroyEmbeddedStorage(string name)
        {
            return Asked<Ack>(new DestroyEmbeddedStringStorageRequest { Name = name }, session.Options.RequestSeconds);
        }

        public Task<List<ModelInfo>> ListModels(CancellationToken token = default(CancellationToken))
        {
            return session.Collect<ListModelsResponse, ModelInfo>(
                new ListModelsRequest(), part => part.Models, part => part.More, token);
        }

        public Task DownloadModel(
            string name, Action<DownloadProgress> progress = null, CancellationToken token = default(CancellationToken))
        {
            return session.Ask<DownloadComplete, DownloadComplete>(
                new DownloadModelRequest { ModelName = name }, session.Options.ModelSeconds, Downloaded, progress,
                token);
        }

        public Task LoadModel(string name, CancellationToken token = default(CancellationToken))
        {
            var request = new LoadModelRequest { ModelName = name };
            return Asked<LoadModelResponse>(request, session.Options.ModelSeconds, token);
        }

        public Task UnloadModel(string name)
        {
            return Asked<Ack>(new UnloadModelRequest { ModelName = name }, session.Options.RequestSeconds);
        }

        public Task DeleteModel(string name)
        {
            return Asked<Ack>(new DeleteModelRequest { ModelName = name }, session.Options.RequestSeconds);
        }

        /// <summary>Downloads it if it is absent, waits while another client does, and loads it.</summary>
        public async Task EnsureModel(
            string name, Action<DownloadProgress> progress = null, CancellationToken token = default(CancellationToken))
        {
            while (true)
            {
                var model = (await ListModels(token)).Find(each => each.Name == name);
                if (model == null)
                    throw new TryllException(ErrorCode.DownloadNotAvailable, "The server has no model `" + name + "`.");
                if (model.Status == ModelStatus.Loaded)
                    return;
                bool waits = false;
                if (model.Status == ModelStatus.Absent || model.Status == ModelStatus.Downloading)
                    try
                    {
                        await DownloadModel(name, progress, token);
                    }
                    catch (TryllException error)
                    {
                        // That client's progress is told to it alone.
                        if (error.Code != ErrorCode.DownloadAlreadyActive)
                            throw;
                        waits = true;
                    }
                if (!waits)
                {
                    await LoadModel(name, token);
                    return;
                }
                await Pause(LookSeconds, token);
            }
        }

        public Task<HealthResponse> Health(CancellationToken token = default(CancellationToken))
        {
            var error = Connection == Connection.Ready ? session.Lacks("health", "say how it is") : null;
            if (error != null)
                return Session.Failed<HealthResponse>(error);
            return session.Ask<HealthResponse, HealthResponse>(
                new HealthRequest(), session.Options.RequestSeconds, health => health, null, token);
        }

        /// <summary>Any request but a turn, and whatever answers it, for what has no call of its own. 0 seconds: as
        /// other requests.</summary>
        public Task<MessageBody> Ask(
            MessageBody request, double seconds = 0, CancellationToken token = default(CancellationToken))
        {
            if (request == null || !request.FromClient || !request.HasRequestId || request is SendMessageRequest)
                return Session.Failed<MessageBody>(
                    new TryllException(ErrorCode.InvalidParamValue, "That message is no request."));
            return session.Ask<MessageBody, MessageBody>(
                request, seconds > 0 ? seconds : session.Options.RequestSeconds, answer => answer, null, token);
        }

        Task Asked<T>(MessageBody request, double seconds, CancellationToken token = default(CancellationToken))
            where T : MessageBody
        {
            return session.Ask<T, bool>(request, seconds, answer => true, null, token);
        }

        /// <summary>To tell an event to each of those who hear it.</summary>
        static List<Action> Heard(Delegate heard, Action<Delegate> tell)
        {
            var tells = new List<Action>();
            foreach (var each in heard == null ? new Delegate[0] : heard.GetInvocationList())
                tells.Add(() => tell(each));
            return tells;
        }

        static DownloadComplete Downloaded(DownloadComplete done)
        {
            if (!done.Success)
                throw new TryllException(ErrorCode.DownloadFailed, done.ErrorMessage);
            return done;
        }

        Task Pause(double seconds, CancellationToken token)
        {
            var source = Tasks.Source<bool>();
            session.Later(seconds, () =>
            {
                if (token.IsCancellationRequested)
                    source.TrySetCanceled();
                else
                    source.TrySetResult(true);
            });
            return source.Task;
        }
    }
}
