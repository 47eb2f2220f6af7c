// The whole API, used. `api PORT` needs a server with the Mock engines; the other modes are each for a server that a
// test makes: tests/clients/test_csharp.py says what it does. Exits with 1, and says where, when something is not as
// promised.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Trunkline.Tryll.Tests
{
    static class Api
    {
        static int Main(string[] words)
        {
            Console.SetOut(new System.IO.StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false)) { AutoFlush = true });
            string mode = words[0];
            if (mode == "managed")
                Managed(words);
            else if (mode == "killed")
                Killed(words);
            else if (mode == "stopped")
                Stopped(words);
            else if (mode == "lost")
                Lost(words[1], int.Parse(words[2], CultureInfo.InvariantCulture));
            else
                Modes[mode](words[1]);
            return 0;
        }

        static readonly Dictionary<string, Action<string>> Modes = new Dictionary<string, Action<string>>
        {
            { "api", All }, { "websocket", WebSocket }, { "connect", Connect }, { "spoken", Spoken }, { "fetched", Fetched },
            { "late", Late }, { "slow", Slow }, { "unknown", Unknown }, { "thrown", Thrown }
        };

        static void Check(bool condition, [CallerLineNumber] int line = 0)
        {
            if (condition)
                return;
            Console.Error.WriteLine("line {0}: not so", line);
            Environment.Exit(1);
        }

        static Client client;

        static T Good<T>(Task<T> task)
        {
            return client.Wait(task);
        }

        static void Good(Task task)
        {
            client.Wait(task);
        }

        static TryllException Bad(Task task)
        {
            try
            {
                client.Wait(task);
                return null;
            }
            catch (TryllException error)
            {
                return error;
            }
        }

        static int Code(Task task)
        {
            var error = Bad(task);
            return error == null ? 0 : error.Code;
        }

        static ClientOptions To(string port)
        {
            return new ClientOptions { Port = int.Parse(port, CultureInfo.InvariantCulture) };
        }

        static GraphDescription Graph(string start, params object[] nodes)
        {
            var graph = new GraphDescription { StartNode = start };
            for (int number = 0; number < nodes.Length; number += 2)
                graph.Nodes.Add(new NodeDescription { Name = (string)nodes[number], Params = (NodeParams)nodes[number + 1] });
            return graph;
        }

        static GraphDescription Echo()
        {
            return Graph("say", "say", new GenerateParams { Stream = true });
        }

        static AgentOptions On(string model)
        {
            return new AgentOptions { DefaultModel = model };
        }

        static short[] Tone(int milliseconds)
        {
            var samples = new short[16 * milliseconds];
            for (int at = 0; at < samples.Length; ++at)
                samples[at] = (short)(8000 * Math.Sin(2 * Math.PI * 440 * at / 16000));
            return samples;
        }

        // ---- Against a real server ----

        static void SessionPart()
        {
            Check(Code(client.Health()) == ErrorCode.ConnectionDropped);
            Check(client.Update() == 0);
            int connected = 0;
            client.Connected += again => connected += again ? 100 : 1;
            Good(client.Connect());
            Good(client.Connect());
            Check(connected == 1 && client.Connection == Connection.Ready);
            Check(client.SessionId != 0);
            Check(client.HasExtension("history") && !client.HasExtension("wings"));
            Check(Good(client.Health()).Status == "ready");
            Good(client.Configure(new ConfigureSessionRequest { GameName = "test" }));
            Check(Good(client.Ask(new HealthRequest())) is HealthResponse);
            Check(Code(client.Ask(new AudioBufferFrame())) == ErrorCode.InvalidParamValue);
        }

        static void Storages()
        {
            Good(client.CreateStorage("list", new[] { "a", "b" }));
            Check(Code(client.CreateStorage("list", new[] { "a" })) == ErrorCode.StringStorageAlreadyExists);
            Good(client.CreateStorage("map", new[] { "1", "2" }, new StorageOptions { Keys = new[] { "x", "y" } }));
            Good(client.DestroyStorage("list"));
            Good(client.CreateStorage("list", new[] { "a" }));
            var embedded = new EmbeddedStorageOptions { EmbeddingModel = "any" };
            Check(Good(client.CreateEmbeddedStorage("lore", new[] { "the mill", "the well" }, embedded)).RecordCount == 2);
            Good(client.DestroyEmbeddedStorage("lore"));
            embedded.RecordsJson = "{\"records\": [{\"text\": \"the mill\"}], \"fields\": []}";
            Check(Good(client.CreateEmbeddedStorage("records", new string[0], embedded)).RecordCount == 1);
            var error = Bad(client.CreateStorage("file", new string[0], new StorageOptions { FilePath = "../outside.txt" }));
            Check(error.Code == ErrorCode.StorageOutsideRoot);
            Check(error.Name == "StorageOutsideRoot" && error.Advice.Length > 0 && error.Message.Length > 0);
        }

        static void Models()
        {
            var all = Good(client.ListModels());
            Check(all.Count > 0 && all[0].Name.Length > 0);
            Check(Code(client.EnsureModel("nobody-has-this")) == ErrorCode.DownloadNotAvailable);
            Check(Code(client.DownloadModel("nobody-has-this")) == ErrorCode.DownloadNotAvailable);
            Check(Code(client.LoadModel("nobody-has-this")) != 0);
            Check(Code(client.DeleteModel("nobody-has-this")) != 0);
            Code(client.UnloadModel("nobody-has-this"));
        }

        static void Turns()
        {
            var agent = Good(client.CreateAgent(Echo(), On("any")));
            string pieces = "", order = "", inner = "";
            int heard = 0;
            agent.Listen(new TurnCallbacks { Done = (result, error) => heard += result != null ? 1 : 0 });
            var hear = new TurnCallbacks();
            hear.Text = piece => { pieces += piece; order += "t"; };
            hear.Done = (result, error) => order += error == null ? "d" : "e";
            var first = Good(agent.Send("Grüß \U0001F600", hear));
            Check(first.Text == "You said: Grüß \U0001F600" && first.Succeeded);
            Check(pieces == first.Text && order == "ttttd" && heard == 1);
            Check(first.TokensGenerated == 4);
            Check(Code(agent.Send("\ud800")) == ErrorCode.InvalidParamValue);
            Check(Code(agent.Send(new string('x', 2 << 20))) == ErrorCode.FrameTooLarge);
            // As a game does it: nothing waits.
            var polled = agent.Send("once more");
            while (!polled.IsCompleted)
                client.Wait(0.05);
            Check(polled.Result.Text == "You said: once more");
            // From within a callback, also with waiting.
            Good(agent.Send("outer", new TurnCallbacks { Done = (result, error) => inner = Good(agent.Send("inner")).Text }));
            Check(inner == "You said: inner");
            // Several at once.
            var agents = new List<Agent>();
            for (int number = 0; number < 8; ++number)
                agents.Add(Good(client.CreateAgent(Echo(), On("any"))));
            var many = agents.ConvertAll(each => each.Send(each.Id.ToString(CultureInfo.InvariantCulture)));
            for (int number = 0; number < many.Count; ++number)
                Check(Good(many[number]).Text == "You said: " + agents[number].Id);
            foreach (var each in agents)
                Good(each.Destroy());
            // What a callback throws comes out of `Update`, and harms neither the turn nor the next one.
            var thrown = agent.Send("thrown", new TurnCallbacks { Done = (result, error) => { throw new ArithmeticException(); } });
            bool came = false;
            while (!came)
                try
                {
                    client.Wait(0.05);
                }
                catch (ArithmeticException)
                {
                    came = true;
                }
            Check(thrown.Result.Text == "You said: thrown" && Good(agent.Send("on")).Text == "You said: on");
        }

        /// <summary>Words that `mock-slow` takes ten seconds to say: nobody is late who cancels that.</summary>
        static string Long()
        {
            return new StringBuilder().Insert(0, " word", 500).ToString();
        }

        static void Agents()
        {
            var nowhere = new GenerateParams { DefaultExit = "nowhere" };
            Check(Code(client.CreateAgent(Graph("say", "say", nowhere), On("any"))) == ErrorCode.InvalidExitTarget);
            var agent = Good(client.CreateAgent(Echo(), On("mock-slow")));
            var first = agent.Send(new string(' ', 4000) + "a very long story " + new string('x', 2000) + Long());
            Check(Code(agent.Send("me, too")) == ErrorCode.AgentBusy);
            Check(!first.IsCompleted);
            Good(agent.Cancel());
            Check(Good(first).Cancelled);
            Good(agent.Restore(new[]
            {
                new HistoryEntry { Role = "user", Text = "I am Ada." }, new HistoryEntry { Role = "assistant", Text = "Hello Ada." }
            }));
            var history = Good(agent.History());
            Check(history.Count == 2 && history[1].Text == "Hello Ada.");
            Good(agent.Restore(history, true));
            Check(Good(agent.History()).Count == 4);
            var changed = new GenerateParams { SystemPrompt = "Be brief.", Stream = true };
            Good(agent.Change("say", changed));
            Check(Code(agent.Change("shout", changed)) == ErrorCode.UnknownNode);
            changed.ModelName = "other";
            Check(Code(agent.Change("say", changed)) == ErrorCode.ParamNotMutable);
            var interrupted = agent.Send("and on" + Long());
            Good(agent.Destroy());
            Check(Good(interrupted).Cancelled);
            Check(Code(agent.Send("still there?")) == ErrorCode.AgentAlreadyDestroyed);
            Check(Code(agent.Destroy()) == ErrorCode.AgentAlreadyDestroyed);
        }

        static void Events()
        {
            var gate = new ToolDefinition { Name = "open_gate", Description = "Opens the gate." };
            gate.Parameters.Add(new ToolParamDefinition { Name = "which", Type = "string", Description = "The gate." });
            var tools = new ToolCallParams { Tools = { gate }, NotifyClient = true, NoToolCalledExit = "intent" };
            var intent = new ClassifyIntentLLMParams
            {
                IntentsIds = "greeting\nfarewell",
                IntentsPrompt = "greeting: the visitor says hello\nfarewell: the visitor says goodbye",
                NotifyClient = true,
                FoundExit = "say",
                NotFoundExit = "say"
            };
            var graph = Graph("tools", "tools", tools, "intent", intent, "say", new GenerateParams());
            var agent = Good(client.CreateAgent(graph, On("any")));
            var calls = new List<ToolCall>();
            var others = new List<NodeEvent>();
            var hear = new TurnCallbacks { ToolCall = calls.Add, Event = others.Add };
            Good(agent.Send("open_gate, \"please\"", hear));
            Check(calls.Count == 1 && calls[0].Node == "tools" && calls[0].Name == "open_gate");
            Check(calls[0].Argument("which") == "open_gate, \"please\"" && calls[0].Argument("why") == "");
            Check(others.Count == 0);
            Good(agent.Send("I say hello", hear));
            Check(calls.Count == 1 && others.Count == 1 && others[0].EventType == "intent_classified");
        }

        static void Voices()
        {
            var request = new CreateVoiceInputRequest { ModelName = "any", VadMinSilenceMs = 200 };
            var voice = Good(client.CreateVoiceInput(request));
            short[] sound = Tone(200), quiet = new short[16 * 400];
            Check(Code(voice.End()) == ErrorCode.NoActiveUtterance);
            var kinds = new List<byte>();
            voice.Listen(update => kinds.Add(update.Kind));
            Good(voice.Begin());
            Check(Code(voice.Begin()) == ErrorCode.UtteranceInProgress);
            voice.Send(sound);
            Check(Good(voice.End()) == "w1 w2" && Good(voice.End()) == "w1 w2");
            Check(kinds.Count > 0 && kinds[kinds.Count - 1] == TranscriptUpdateKind.UtteranceFinal);
            Good(voice.Begin(new UtteranceOptions { HandsFree = true }));
            voice.Send(sound);
            voice.Send(quiet);
            Check(Good(voice.Transcript()) == "w1 w2");
            Good(voice.Begin());
            Good(voice.Cancel());
            Check(Code(voice.Transcript()) == ErrorCode.NoActiveUtterance);
            Spoken(voice, sound);
            // More than one frame carries.
            Good(voice.Begin());
            voice.Send(Tone(5000));
            Check(Good(voice.End()).EndsWith("w50", StringComparison.Ordinal));
            Good(voice.Destroy());
            Check(Code(voice.Begin()) == ErrorCode.VoiceInputNotFound);
        }

        /// <summary>What was said is answered, and nobody has sent it.</summary>
        static void Spoken(VoiceInput voice, short[] sound)
        {
            var agent = Good(client.CreateAgent(Echo(), On("any")));
            string pieces = "", whole = "";
            agent.Listen(new TurnCallbacks { Text = piece => pieces += piece, Done = (result, error) => whole = result.Text });
            for (int number = 0; number < 2; ++number)
            {
                pieces = whole = "";
                Good(voice.Begin(new UtteranceOptions { Agent = agent }));
                voice.Send(sound);
                Check(Good(voice.End()) == "w1 w2");
                while (whole.Length == 0)
                    client.Wait(0.05);
                Check(whole == "You said: w1 w2" && pieces == whole);
            }
        }

        /// <summary>As a game's code awaits it, on the thread that calls `Update`.</summary>
        static async Task Awaited()
        {
            int thread = Thread.CurrentThread.ManagedThreadId;
            var agent = await client.CreateAgent(Echo(), On("mock-slow"));
            using (var cancelled = new CancellationTokenSource())
            {
                bool asked = false;
                var hear = new TurnCallbacks();
                // Once: one that is queued for a later piece may come when the source is disposed of, and ends the process.
                hear.Text = piece => asked = asked || ThreadPool.QueueUserWorkItem(state => cancelled.Cancel());
                var turn = await agent.Send("and on" + Long(), hear, cancelled.Token);
                Check(turn.Cancelled && Thread.CurrentThread.ManagedThreadId == thread);
                // Whoever has cancelled does not wait: it is not even asked.
                try
                {
                    await client.CreateAgent(Echo(), On("any"), cancelled.Token);
                    Check(false);
                }
                catch (OperationCanceledException)
                {
                    Check(Thread.CurrentThread.ManagedThreadId == thread);
                }
            }
            await agent.Destroy();
        }

        static void All(string port)
        {
            bool called = false;
            using (client = new Client(To(port)))
            {
                SessionPart();
                Storages();
                Models();
                Turns();
                Agents();
                Events();
                Voices();
                Good(Awaited());
                var agent = Good(client.CreateAgent(Echo(), On("mock-slow")));
                var pending = agent.Send("one two three four five six seven eight");
                int lost = 0;
                client.Lost += (error, isFinal) => ++lost;
                client.Close();
                Check(pending.IsFaulted && Code(pending) == ErrorCode.ConnectionDropped && lost == 0);
                Check(Code(client.Health()) == ErrorCode.ConnectionDropped);
                Good(client.Connect());
                Check(Code(agent.Send("hello")) == ErrorCode.ConnectionDropped);
                Good(client.CreateAgent(Echo(), On("mock-slow"))).Send("x", new TurnCallbacks { Done = (r, e) => called = e != null });
            }
            // Whoever waits hears of the end, once.
            Check(called);
        }

        /// <summary>The same by WebSocket; a frame of more than one of its buffers, too.</summary>
        static void WebSocket(string address)
        {
            using (client = new Client(new ClientOptions { WebSocket = address }))
            {
                Good(client.Connect());
                var agent = Good(client.CreateAgent(Echo(), On("any")));
                var text = new string('x', 100000);
                Check(Good(agent.Send(text)).Text == "You said: " + text);
                client.Close();
                Good(client.Connect());
                Check(Good(client.Health()).Status == "ready");
            }
            using (client = new Client(new ClientOptions { WebSocket = "ws://127.0.0.1:1" }))
                Check(Code(client.Connect()) == ErrorCode.ConnectionFailed);
            using (client = new Client(new ClientOptions { WebSocket = "nonsense" }))
                Check(Code(client.Connect()) == ErrorCode.ConnectionFailed);
        }

        // ---- Against a server of a test's own ----

        /// <summary>Says what connecting comes to.</summary>
        static void Connect(string port)
        {
            var options = To(port);
            options.ConnectSeconds = 5;
            client = new Client(options);
            var error = Bad(client.Connect());
            Console.WriteLine("{0} {1}", error.Code, error.Message);
        }

        /// <summary>Loses the connection again and again, and has a session again each time.</summary>
        static void Lost(string port, int times)
        {
            var options = To(port);
            options.Config.GameName = "kept";
            options.Reconnect = new Reconnect { Attempts = 40, FirstSeconds = 0.01, LongestSeconds = 0.05 };
            client = new Client(options);
            Agent agent = null;
            int made = 0, losses = 0;
            bool over = false;
            client.Lost += (error, isFinal) =>
            {
                Check(error.Code == ErrorCode.ConnectionDropped || isFinal);
                ++losses;
                over = isFinal;
            };
            client.Connected += again =>
            {
                Check(again == made > 0);
                if (again)
                    Check(Code(agent.Send("to the old one")) == ErrorCode.ConnectionDropped);
                agent = Good(client.CreateAgent(Echo()));
                ++made;
            };
            Good(client.Connect());
            while (made <= times)
            {
                // The server hangs up in the middle of the turn, or of what comes before it.
                Check(Code(agent.Send("hello")) == ErrorCode.ConnectionDropped);
                while (client.Connection != Connection.Ready && !over)
                    client.Wait(0.05);
                Check(!over);
            }
            Check(losses == times);
            Console.WriteLine(losses);
            // Tells the server that it may go, for good.
            client.Health();
            while (!over)
                client.Wait(0.05);
            Check(client.Connection == Connection.Idle);
            Check(Code(client.Health()) == ErrorCode.ConnectionFailed);
            Check(Code(client.Connect()) == ErrorCode.ConnectionFailed);
        }

        /// <summary>Whoever hears of the end of a connection throws something, and all others hear of it, too.</summary>
        static void Thrown(string port)
        {
            var options = To(port);
            options.Reconnect = new Reconnect { FirstSeconds = 0.01 };
            client = new Client(options);
            string heard = "";
            client.Connected += again => { throw new ArithmeticException("connected"); };
            client.Connected += again => heard += again ? "again " : "connected ";
            client.Lost += (error, isFinal) => { throw new ArithmeticException("lost"); };
            client.Lost += (error, isFinal) => heard += "lost ";
            var connecting = client.Connect();
            Check(What(() => connecting.IsCompleted) == "connected" && !connecting.IsFaulted);
            var voice = Good(client.CreateVoiceInput(new CreateVoiceInputRequest()));
            Good(voice.Begin());
            var waiting = new List<Task> { voice.Transcript() };
            foreach (string name in new[] { "a", "b", "c" })
            {
                var agent = Good(client.CreateAgent(Echo()));
                agent.Listen(new TurnCallbacks { Done = (result, error) => { throw new ArithmeticException("listened"); } });
                waiting.Add(agent.Send(name, new TurnCallbacks { Done = (result, error) =>
                {
                    heard += name + " ";
                    throw new ArithmeticException("done");
                } }));
            }
            waiting.Add(client.Health());
            waiting.Add(client.ListModels());
            // The server hangs up when it has heard all of that.
            string thrown = What(() => waiting.TrueForAll(each => each.IsCompleted));
            Check(waiting.TrueForAll(each => Code(each) == ErrorCode.ConnectionDropped));
            What(() => client.Connection == Connection.Ready);
            Good(client.Health());
            Console.WriteLine("{0}: {1}", thrown, heard);
        }

        /// <summary>Goes on until something is so, and says what was thrown first meanwhile.</summary>
        static string What(Func<bool> so)
        {
            string first = "nothing";
            while (!so())
                try
                {
                    client.Wait(0.05);
                }
                catch (ArithmeticException error)
                {
                    first = first == "nothing" ? error.Message : first;
                }
            return first;
        }

        /// <summary>A turn with sound, a replaced answer, and an event of a type that is new.</summary>
        static void Spoken(string port)
        {
            client = new Client(To(port));
            Good(client.Connect());
            var agent = Good(client.CreateAgent(Echo()));
            var result = Good(agent.Send("hello", new TurnCallbacks
            {
                Text = piece => Console.WriteLine("text " + piece),
                Replaced = text => Console.WriteLine("replaced " + text),
                Event = told => Console.WriteLine("event " + told.EventType),
                Timing = told => Console.WriteLine(Spelled(told)),
                ToolCall = call => Console.WriteLine(
                    "tool " + call.Name + string.Concat(call.Arguments.ConvertAll(pair => " " + pair.Key + "=" + pair.Value).ToArray())),
                Sound = sound => Console.WriteLine(
                    "sound " + sound.SampleRate + " " + sound.Channels + " " + string.Join(" ", sound.Samples))
            }));
            Console.WriteLine("done " + result.Text + " " + result.Status);
        }

        static string Spelled(TtsTimingFrame timing)
        {
            return "timing" + string.Concat(timing.Marks.ConvertAll(mark => " " + mark.Text).ToArray());
        }

        /// <summary>A server that does not know all that it is asked for.</summary>
        static void Unknown(string port)
        {
            client = new Client(To(port));
            Good(client.Connect());
            Action<Task> tell = task =>
            {
                var error = Bad(task);
                Console.WriteLine("{0} {1}", error == null ? 0 : error.Code, error == null ? "" : error.Message);
            };
            var sampling = new SamplingOverrides();
            var graph = new GraphDescription { StartNode = "say" };
            graph.Nodes.Add(
                new NodeDescription { Name = "say", Params = new GenerateParams { Sampling = sampling } });
            sampling.Stop.Add("END");
            tell(client.CreateAgent(graph));
            sampling.Stop.Clear();
            sampling.Lora.Add(new LoraAdapter());
            tell(client.CreateAgent(graph));
            var agent = Good(client.CreateAgent(Echo()));
            tell(agent.Cancel());
            tell(agent.History());
            tell(agent.Restore(new HistoryEntry[0]));
            tell(client.Health());
            tell(agent.Change("say", new SpeakParams { Timings = true }));
            tell(agent.Change("say", new SpeakParams { Pronunciations = "words" }));
            var none = new string[0];
            tell(client.CreateEmbeddedStorage("a", none, new EmbeddedStorageOptions { RecordsJson = "{}" }));
            tell(client.CreateEmbeddedStorage("a", none, new EmbeddedStorageOptions { MemoryPath = "a" }));
            Good(agent.Change("say", new SpeakParams { Pronunciations = "" }));
        }

        /// <summary>Models that are fetched, with progress.</summary>
        static void Fetched(string port)
        {
            client = new Client(To(port));
            Good(client.Connect());
            Action<DownloadProgress> told = progress => Console.WriteLine("{0} {1:0}", progress.ModelName, progress.Percent);
            Good(client.EnsureModel("absent", told));
            Good(client.EnsureModel("absent", told));
            Check(Code(client.DownloadModel("broken", told)) == ErrorCode.DownloadFailed);
            Good(client.EnsureModel("busy", told));
            Good(client.CreateAgent(Echo(), new AgentOptions { Progress = told }));
        }

        /// <summary>A server that is silent, and then too late.</summary>
        static void Late(string port)
        {
            var options = To(port);
            options.ModelSeconds = 0.2;
            options.TurnSeconds = 0.2;
            client = new Client(options);
            Good(client.Connect());
            Check(Code(client.CreateAgent(Echo())) == ErrorCode.Timeout);
            // The server answers the first with that.
            options.ModelSeconds = 60;
            var agent = Good(client.CreateAgent(Echo()));
            Check(Code(agent.Send("hello")) == ErrorCode.Timeout);
            // What comes of the old turn harms no new one.
            options.TurnSeconds = 60;
            Check(Good(agent.Send("again")).Text == "again");
            Good(client.Health());
        }

        /// <summary>What the server sends is not read for a while, and nothing is lost.</summary>
        static void Slow(string port)
        {
            client = new Client(To(port));
            Good(client.Connect());
            var agent = Good(client.CreateAgent(Echo()));
            int bytes = 0;
            var pending = agent.Send(new string('x', 500000), new TurnCallbacks { Text = piece => bytes += piece.Length });
            while (!pending.IsCompleted)
                client.Wait(0.01);
            Check(Good(pending).Text.Length == bytes);
            Console.WriteLine(bytes);
        }

        // ---- The server of a game ----

        static ServerOptions Options(string[] words)
        {
            var arguments = new List<string>(words);
            arguments.RemoveRange(0, 2);
            return new ServerOptions
            {
                Program = words[1],
                Arguments = arguments,
                Ws = true,
                MoreArguments = new[] { "--metrics", "127.0.0.1:0" },
                LogFile = Environment.GetEnvironmentVariable("SERVER_LOG") ?? ""
            };
        }

        static void Managed(string[] words)
        {
            var server = new ManagedServer();
            Check(!server.Running);
            for (int times = 0; times < 2; ++times)
            {
                try
                {
                    server.StartAsync(Options(words)).GetAwaiter().GetResult();
                }
                catch (TryllException error)
                {
                    Console.WriteLine("{0} {1}", error.Code, error.Message);
                    Check(!server.Running && server.Port == 0);
                    return;
                }
                Check(server.Running && server.Port != 0 && server.Id != 0);
                Check(server.WsPort != 0 && server.WsPort != server.Port);
                Check(server.MetricsPort != 0 && server.MetricsPort != server.WsPort);
                using (client = new Client(new ClientOptions { Host = server.Host, Port = server.Port }))
                {
                    Good(client.Connect());
                    Check(Good(client.Health()).Status == "ready");
                }
                server.Stop();
                Check(!server.Running && server.Port == 0 && server.WsPort == 0 && server.MetricsPort == 0);
                server.Stop();
            }
            Console.WriteLine("stopped");
        }

        /// <summary>Stops a server that is not ready yet: before it is there, and when it is.</summary>
        static void Stopped(string[] words)
        {
            string there = Environment.GetEnvironmentVariable("SERVER_THERE");
            var options = Options(words);
            options.StopSeconds = TimeSpan.MaxValue.TotalSeconds;
            options.StartSeconds = TimeSpan.MaxValue.TotalSeconds;
            var server = new ManagedServer();
            for (int times = 0; times < 5; ++times)
            {
                var starting = server.StartAsync(options);
                while (times > 2 && !System.IO.File.Exists(there))
                    Thread.Sleep(1);
                server.Dispose();
                try
                {
                    starting.GetAwaiter().GetResult();
                    Check(false);
                }
                catch (TryllException error)
                {
                    Check(error.Code == ErrorCode.ConnectionFailed && error.Message.Contains("was stopped"));
                }
                Check(!server.Running && server.Id == 0 && server.Port == 0 && server.Host == "");
                System.IO.File.Delete(there);
            }
            // What is started anew takes the place of what is being started, and of what is there.
            var first = server.StartAsync(options);
            // What it leaves behind says late that it is ready.
            string late = "(for i in $(seq 3000); do test -e \"$SERVERS.late\" && break; sleep 0.01; done; " + Ready(9) + "; rm \"$SERVERS.late\") & ";
            options.Arguments = new[] { "-c", "echo $$ >> \"$SERVERS\"; " + late + Ready(7) + "; exec cat" };
            server.Start(options);
            Check(server.Running && server.Port == 7 && Failed(first));
            string until = ": > \"$SERVERS.late\"; while test -e \"$SERVERS.late\"; do sleep 0.01; done; ";
            options.Arguments = new[] { "-c", "echo $$ >> \"$SERVERS\"; " + until + Ready(8) + "; exec cat" };
            server.StartAsync(options).GetAwaiter().GetResult();
            Check(server.Running && server.Port == 8);
            server.Dispose();
            Check(!server.Running && server.Port == 0);
        }

        static string Ready(int port)
        {
            return "echo '{\"type\": \"ready\", \"host\": \"127.0.0.1\", \"port\": " + port + "}'";
        }

        static bool Failed(Task task)
        {
            ((IAsyncResult)task).AsyncWaitHandle.WaitOne();
            return task.IsFaulted;
        }

        /// <summary>Starts a server, says which, and waits to be killed.</summary>
        static void Killed(string[] words)
        {
            var server = new ManagedServer();
            server.Start(Options(words));
            Console.WriteLine(server.Id);
            Console.In.Read();
        }
    }
}
