using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Trunkline.Tryll
{
    /// <summary>Somebody waits for an answer.</summary>
    internal sealed class Call
    {
        public double Seconds;
        public double Deadline;
        /// <summary>True if that was all of it.</summary>
        public Func<MessageBody, bool> Answer;
        public Action<TryllException> Fail;
        public Action<DownloadProgress> Progress;
    }

    /// <summary>A turn that runs.</summary>
    internal sealed class Turn
    {
        public readonly TaskCompletionSource<TurnResult> Source = Tasks.Source<TurnResult>();
        public ulong RequestId;
        public Agent Agent;
        public TurnCallbacks Callbacks = new TurnCallbacks();
        public readonly StringBuilder Text = new StringBuilder();
        public uint SampleRate;
        public ushort Channels;
        public double Deadline;
        public bool Over;
    }

    /// <summary>What is behind a client: the connection's life, and who waits. All but `Post` belongs to one
    /// thread.</summary>
    internal sealed partial class Session
    {
        /// <summary>More frames of one answer are no answer.</summary>
        const int MostParts = 64;

        public readonly ClientOptions Options;
        public Connection Connection;
        /// <summary>Changes whenever a connection begins or ends.</summary>
        public long Epoch;
        public ulong SessionId;
        public List<string> Extensions = new List<string>();
        public Action<bool> OnConnected;
        public Action<TryllException, bool> OnLost;

        static readonly Stopwatch Clock = Stopwatch.StartNew();

        readonly Dictionary<ulong, Call> calls = new Dictionary<ulong, Call>();
        readonly List<KeyValuePair<double, Action>> timers = new List<KeyValuePair<double, Action>>();
        readonly ConcurrentQueue<Action> posted = new ConcurrentQueue<Action>();
        ulong lastId;
        volatile Link link;
        TaskCompletionSource<bool> connecting;
        double connectDeadline, nextAttempt, pause;
        int attempts;
        /// <summary>Whether there was a session that is to be replaced.</summary>
        bool again;
        bool greeted, configuring;
        /// <summary>What the server complained of, naming no request, before it closed.</summary>
        TryllException reason;
        TryllException lastError;

        public Session(ClientOptions options)
        {
            Options = options;
        }

        static double Now { get { return Clock.Elapsed.TotalSeconds; } }

        // What the client's calls need.

        public Task Connect()
        {
            if (Connection == Connection.Ready)
                return Task.FromResult(true);
            if (connecting == null)
            {
                connecting = Tasks.Source<bool>();
                if (Connection == Connection.Idle)
                    again = false;
                if (Connection != Connection.Connecting)
                    Open();
            }
            return connecting == null ? Failed<bool>(NotConnected()) : connecting.Task;
        }

        public void Close()
        {
            End(new TryllException(ErrorCode.ConnectionDropped, "This client is closed."), false);
        }

        /// <summary>Delivers what has come, and gives the number of frames. Never blocks.</summary>
        public int Update()
        {
            int count = 0;
            TryllException lost = null;
            DoWhatWasPosted();
            // A callback may come back here, or end the connection: then there is less to do.
            while (link != null)
            {
                var payload = link.Take(out lost);
                if (payload == null)
                    break;
                ++count;
                TakeFrame(payload);
                DoWhatWasPosted();
            }
            if (link != null && lost != null)
                End(reason ?? lost, true);
            LookAtTheClock();
            return count;
        }

        /// <summary>Waits until there is something to do, or for so long. False: nothing will ever come.</summary>
        public bool Sleep(double seconds)
        {
            if (!posted.IsEmpty)
                return true;
            double next = double.MaxValue;
            foreach (var call in calls.Values)
                next = Math.Min(next, call.Deadline);
            foreach (var turn in turns.Values)
                next = Math.Min(next, turn.Deadline);
            foreach (var timer in timers)
                next = Math.Min(next, timer.Key);
            if (Connection == Connection.Connecting)
                next = Math.Min(next, connectDeadline);
            if (Connection == Connection.Waiting)
                next = Math.Min(next, nextAttempt);
            bool expected = link != null || next < double.MaxValue;
            // An hour is enough for once. A millisecond more, since the rest of one is not slept through.
            double left = Math.Max(0, Math.Min(Math.Min(seconds, 3600), next - Now + 0.001));
            if (link != null)
                link.Wait(left);
            else if (expected || seconds < double.MaxValue)
                Thread.Sleep(TimeSpan.FromSeconds(left));
            return expected;
        }

        /// <summary>Does something in the next `Update`. From any thread.</summary>
        public void Post(Action action)
        {
            posted.Enqueue(action);
            var open = link;
            if (open != null)
                open.Wake();
        }

        void DoWhatWasPosted()
        {
            Action action;
            while (posted.TryDequeue(out action))
                action();
        }

        public static Task<T> Failed<T>(TryllException error)
        {
            var source = Tasks.Source<T>();
            source.TrySetException(error);
            return source.Task;
        }

        /// <summary>Asks, and lets `convert` make of the answer what the caller wants.</summary>
        public Task<T> Ask<TAnswer, T>(
            MessageBody request, double seconds, Func<TAnswer, T> convert, Action<DownloadProgress> progress = null,
            CancellationToken token = default(CancellationToken)) where TAnswer : MessageBody
        {
            if (token.IsCancellationRequested)
                return Task.FromCanceled<T>(token);
            var source = Tasks.Source<T>();
            var call = new Call { Seconds = seconds, Progress = progress };
            call.Fail = error => source.TrySetException(error);
            call.Answer = body =>
            {
                var answer = body as TAnswer;
                try
                {
                    if (answer == null)
                        throw WrongAnswer();
                    source.TrySetResult(convert(answer));
                }
                catch (TryllException error)
                {
                    source.TrySetException(error);
                }
                return true;
            };
            Begin(request, call);
            CancelWith(token, request.Request, source);
            return source.Task;
        }

        /// <summary>Asks for something that may come in several frames, all but the last with `more`.</summary>
        public Task<List<T>> Collect<TAnswer, T>(
            MessageBody request, Func<TAnswer, List<T>> items, Func<TAnswer, bool> more, CancellationToken token)
            where TAnswer : MessageBody
        {
            if (token.IsCancellationRequested)
                return Task.FromCanceled<List<T>>(token);
            var source = Tasks.Source<List<T>>();
            var all = new List<T>();
            int parts = 0;
            var call = new Call { Seconds = Options.RequestSeconds, Fail = error => source.TrySetException(error) };
            call.Answer = body =>
            {
                var answer = body as TAnswer;
                if (answer == null || ++parts > MostParts)
                {
                    source.TrySetException(WrongAnswer());
                    return true;
                }
                all.AddRange(items(answer));
                if (more(answer))
                    return false;
                source.TrySetResult(all);
                return true;
            };
            Begin(request, call);
            CancelWith(token, request.Request, source);
            return source.Task;
        }

        /// <summary>Sends a request, and lets the call wait for its answer.</summary>
        public void Begin(MessageBody request, Call call)
        {
            ulong number = request.Request = ++lastId;
            call.Deadline = Now + call.Seconds;
            var error = Connection == Connection.Ready ? UnknownFields.In(request, Extensions) : null;
            error = error ?? Send(request);
            if (error != null)
                call.Fail(error);
            else
                calls[number] = call;
        }

        /// <summary>Whoever cancels does not wait any longer; an agent that comes then is destroyed.</summary>
        void CancelWith<T>(CancellationToken token, ulong number, TaskCompletionSource<T> source)
        {
            if (!token.CanBeCanceled)
                return;
            var registration = token.Register(() => Post(() =>
            {
                calls.Remove(number);
                source.TrySetCanceled();
            }));
            source.Task.ContinueWith(task => registration.Dispose());
        }

        /// <summary>Sends something now, if it can be sent; or says why not.</summary>
        public TryllException Send(MessageBody message)
        {
            if (Connection != Connection.Ready && !configuring)
                return NotConnected();
            try
            {
                if (link.Send(Codec.Encode(message)))
                    return null;
            }
            catch (TryllException error)
            {
                return error;
            }
            return new TryllException(ErrorCode.ConnectionDropped, "The server does not read: too much waits for it.");
        }

        /// <summary>Why an agent or a voice input cannot be used, or null.</summary>
        public TryllException Unusable(long epoch, bool destroyed, int gone)
        {
            if (destroyed)
                return new TryllException(gone);
            if (Connection != Connection.Ready)
                return NotConnected();
            return epoch == Epoch ? null
                : new TryllException(
                    ErrorCode.ConnectionDropped, "It is gone with the connection that it belonged to.");
        }

        public bool HasExtension(string name)
        {
            return Extensions.Contains(name);
        }

        /// <summary>Why a server without that extension is not asked; null for one that has it.</summary>
        public TryllException Lacks(string extension, string what)
        {
            return HasExtension(extension) ? null
                : new TryllException(ErrorCode.UnknownMessageType, "This server cannot " + what + ".");
        }

        public void Later(double seconds, Action action)
        {
            timers.Add(new KeyValuePair<double, Action>(Now + seconds, action));
        }

        TryllException NotConnected()
        {
            if (Connection == Connection.Idle && lastError != null)
                return lastError;
            return new TryllException(ErrorCode.ConnectionDropped, "There is no connection.");
        }

        static TryllException WrongAnswer()
        {
            return new TryllException(
                ErrorCode.MalformedMessage, "The server broke the protocol: its answer is none to that.");
        }

        // The connection's life.

        void Open()
        {
            ++Epoch;
            Connection = Connection.Connecting;
            greeted = false;
            reason = null;
            connectDeadline = Now + Options.ConnectSeconds;
            try
            {
                if (Options.WebSocket.Length > 0)
                    link = new WebSocketLink(Options.WebSocket);
                else
                    link = new TcpLink(Options.Host, Options.Port);
            }
            catch (UriFormatException error)
            {
                End(new TryllException(ErrorCode.ConnectionFailed, "The address is none: " + error.Message), false);
            }
        }

        void Greet(MessageBody body)
        {
            var complaint = body as ErrorResponse;
            var ready = body as SessionReady;
            if (complaint != null)
                End(new TryllException((int)complaint.Code, complaint.Message), true);
            else if (ready == null)
                End(new TryllException(
                    ErrorCode.MalformedMessage, "The server began with something else than a session."), true);
            else if (ready.ProtocolVersion != Protocol.Version)
                End(new TryllException(
                    ErrorCode.ProtocolVersionMismatch,
                    "The server speaks version " + ready.ProtocolVersion + " of the protocol, and this client "
                        + Protocol.Version + "."), true);
            else
                Configure(ready);
        }

        void Configure(SessionReady ready)
        {
            greeted = true;
            SessionId = ready.SessionId;
            Extensions = ready.Extensions;
            Options.Config.ProtocolVersion = Protocol.Version;
            var call = new Call { Seconds = Options.ConnectSeconds };
            call.Fail = error =>
            {
                // Unless that is over already, and everybody hears why.
                if (Connection == Connection.Connecting)
                    End(error, true);
            };
            call.Answer = body =>
            {
                if (body is ConfigureSessionResponse)
                    Begun();
                else
                    End(WrongAnswer(), true);
                return true;
            };
            configuring = true;
            try
            {
                Begin(Options.Config, call);
            }
            finally
            {
                configuring = false;
            }
        }

        void Begun()
        {
            bool isAgain = again;
            Connection = Connection.Ready;
            again = false;
            attempts = 0;
            var waiting = connecting;
            connecting = null;
            try
            {
                if (OnConnected != null)
                    OnConnected(isAgain);
            }
            finally
            {
                if (waiting != null)
                    waiting.TrySetResult(true);
            }
        }

        /// <summary>The connection is over. `retries`: whether another may be tried.</summary>
        void End(TryllException error, bool retries)
        {
            var was = Connection;
            if (was == Connection.Idle && connecting == null)
                return;
            if (link != null)
                link.Close();
            link = null;
            SessionId = 0;
            ++Epoch;
            bool hadSession = was == Connection.Ready || again;
            bool tries = retries && hadSession && MayRetry(error.Code) && attempts < Options.Reconnect.Attempts;
            lastError = tries ? null : error;
            Connection = tries ? Connection.Waiting : Connection.Idle;
            if (tries)
            {
                pause = attempts > 0
                    ? Math.Min(2 * pause, Options.Reconnect.LongestSeconds)
                    : Options.Reconnect.FirstSeconds;
                ++attempts;
                nextAttempt = Now + pause;
            }
            else
            {
                attempts = 0;
            }
            again = tries;
            var waiting = tries ? null : connecting;
            if (!tries)
                connecting = null;
            var tells = Waiting(error, tries);
            if (waiting != null)
                tells.Add(() => waiting.TrySetException(error));
            // Of each loss it is heard once, and once more if that is the end.
            if (retries && hadSession && (was == Connection.Ready || !tries) && OnLost != null)
                tells.Add(() => OnLost(error, !tries));
            Everybody.Hears(tells);
        }

        static bool MayRetry(int code)
        {
            return code != ErrorCode.FrameTooLarge && code != ErrorCode.ProtocolVersionMismatch
                && code != ErrorCode.Unauthorized;
        }

        /// <summary>To tell whoever waits why that has no end. Nobody waits any more from now on: whoever is told may
        /// begin anew.</summary>
        List<Action> Waiting(TryllException error, bool tries)
        {
            var tells = new List<Action>();
            foreach (var call in calls.Values)
                tells.Add(() => call.Fail(error));
            foreach (var agent in agents.Values)
                tells.AddRange(Forgotten(agent, error));
            foreach (var voice in voices.Values)
                tells.Add(() => Forgotten(voice, error));
            calls.Clear();
            agents.Clear();
            voices.Clear();
            if (tries)
                return tells;
            // What they do next fails, and whoever waits for it hears that.
            foreach (var timer in timers)
                tells.Add(timer.Value);
            timers.Clear();
            return tells;
        }

        void LookAtTheClock()
        {
            double now = Now;
            foreach (var each in new List<KeyValuePair<ulong, Call>>(calls))
                if (each.Value.Deadline <= now && calls.Remove(each.Key))
                    each.Value.Fail(new TryllException(ErrorCode.Timeout));
            foreach (var turn in new List<Turn>(turns.Values))
                if (turn.Deadline <= now && !turn.Over)
                    GiveUp(turn, new TryllException(ErrorCode.Timeout));
            foreach (var timer in timers.ToArray())
                if (timer.Key <= now && timers.Remove(timer))
                    timer.Value();
            if (Connection == Connection.Connecting && connectDeadline <= now)
                End(new TryllException(ErrorCode.Timeout, "The server did not begin a session in time."), true);
            if (Connection == Connection.Waiting && nextAttempt <= now)
                Open();
        }
    }
}
