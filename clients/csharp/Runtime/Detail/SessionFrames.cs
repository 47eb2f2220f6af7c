using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Trunkline.Tryll
{
    /// <summary>What comes from the server, and whom it is for.</summary>
    internal sealed partial class Session
    {
        /// <summary>The longest answer that is kept, in characters.</summary>
        const int MostAnswer = 16 << 20;

        readonly Dictionary<ulong, Turn> turns = new Dictionary<ulong, Turn>();
        readonly Dictionary<ulong, Agent> agents = new Dictionary<ulong, Agent>();
        readonly Dictionary<ulong, VoiceInput> voices = new Dictionary<ulong, VoiceInput>();

        public Agent Add(CreateAgentResponse made)
        {
            return agents[made.AgentId] = new Agent(this, made.AgentId);
        }

        public VoiceInput Add(CreateVoiceInputResponse made)
        {
            return voices[made.VoiceInputId] = new VoiceInput(this, made.VoiceInputId);
        }

        public Task<TurnResult> BeginTurn(Agent agent, string text, TurnCallbacks callbacks, CancellationToken token)
        {
            var turn = new Turn { RequestId = ++lastId, Agent = agent, Callbacks = callbacks };
            turn.Deadline = Now + Options.TurnSeconds;
            agent.Asked.Add(turn);
            turns[turn.RequestId] = turn;
            var error = Send(new SendMessageRequest { RequestId = turn.RequestId, AgentId = agent.Id, Text = text });
            if (error != null)
                EndTurn(turn, null, error);
            if (token.CanBeCanceled)
            {
                var registration = token.Register(() => Post(() =>
                {
                    if (!turn.Over)
                        agent.Cancel();
                }));
                turn.Source.Task.ContinueWith(task => registration.Dispose());
            }
            return turn.Source.Task;
        }

        public void Forget(Agent agent, TryllException error)
        {
            agents.Remove(agent.Id);
            Everybody.Hears(Forgotten(agent, error));
        }

        /// <summary>To tell whoever waits for a turn of the agent that it has no end.</summary>
        List<Action> Forgotten(Agent agent, TryllException error)
        {
            var tells = new List<Action>();
            foreach (var turn in agent.Asked)
                tells.Add(() => EndTurn(turn, null, error));
            var unasked = agent.Unasked;
            if (unasked != null)
                tells.Add(() => EndTurn(unasked, null, error));
            tells.Add(() => agent.Listening = null);
            return tells;
        }

        public void Forget(VoiceInput voice, TryllException error)
        {
            voices.Remove(voice.Id);
            Forgotten(voice, error);
        }

        static void Forgotten(VoiceInput voice, TryllException error)
        {
            voice.Utterance.Fail(error);
            voice.Listening = null;
        }

        void TakeFrame(byte[] payload)
        {
            MessageBody body;
            try
            {
                body = Codec.Decode(payload);
            }
            catch (TryllException error)
            {
                // What is unknown is passed over: servers may be newer.
                if (error.Code != ErrorCode.UnknownMessageType)
                    End(new TryllException(
                        error.Code, "The server broke the protocol: it sent a frame that is no message."), true);
                return;
            }
            if (Connection == Connection.Connecting && !greeted)
            {
                Greet(body);
                return;
            }
            reason = null;
            Take(body);
        }

        void Take(MessageBody body)
        {
            // Not a switch over types: mono's compiler has none.
            if (body is AnswerText)
                TakeText((AnswerText)body);
            else if (body is TurnComplete)
                TakeEnd((TurnComplete)body);
            else if (body is NodeEvent)
                TakeEvent((NodeEvent)body);
            else if (body is TtsAudioFrame)
                TakeSound((TtsAudioFrame)body);
            else if (body is TtsAudioFormatFrame)
                TakeFormat((TtsAudioFormatFrame)body);
            else if (body is TtsTimingFrame)
                TakeTiming((TtsTimingFrame)body);
            else if (body is WireTranscriptUpdate)
                TakeUpdate((WireTranscriptUpdate)body);
            else if (body is ErrorResponse)
                TakeError((ErrorResponse)body);
            else if (body is DownloadProgress)
                TakeProgress((DownloadProgress)body);
            else
                TakeAnswer(body);
        }

        /// <summary>The turn that a frame belongs to; null if nobody waits for it.</summary>
        Turn TurnOf(ulong agentId, ulong requestId, bool named)
        {
            Agent agent;
            Turn turn = null;
            if (!agents.TryGetValue(agentId, out agent))
                return null;
            if (requestId != 0)
            {
                turns.TryGetValue(requestId, out turn);
            }
            else if (agent.Asked.Count > 0 && (!named || agent.Unasked == null))
            {
                // A turn that the server begins waits for the end of the one that was asked for.
                turn = agent.Asked[0];
            }
            else
            {
                agent.Unasked = agent.Unasked ?? new Turn { Agent = agent };
                turn = agent.Unasked;
            }
            if (turn != null)
                turn.Deadline = Now + Options.TurnSeconds;
            return turn;
        }

        /// <summary>Lets everybody who hears a turn hear something.</summary>
        static void Tell(Turn turn, Action<TurnCallbacks> tell)
        {
            var listening = turn.Agent.Listening;
            try
            {
                tell(turn.Callbacks);
            }
            finally
            {
                if (listening != null)
                    tell(listening);
            }
        }

        void TakeText(AnswerText answer)
        {
            var turn = TurnOf(answer.AgentId, answer.RequestId, true);
            if (turn == null)
                return;
            string text = answer.Text, piece = text;
            if (!answer.IsDelta)
            {
                string before = turn.Text.ToString();
                piece = text.StartsWith(before, StringComparison.Ordinal) ? text.Substring(before.Length) : null;
                turn.Text.Length = 0;
            }
            turn.Text.Append(text);
            if (turn.Text.Length > MostAnswer)
                GiveUp(turn, new TryllException(ErrorCode.InferenceFailed, "The answer is too long to be kept."));
            else if (piece == null)
                Tell(turn, hear => Hear(hear.Replaced, text));
            else if (piece.Length > 0)
                Tell(turn, hear => Hear(hear.Text, piece));
        }

        static void Hear<T>(Action<T> callback, T what)
        {
            if (callback != null)
                callback(what);
        }

        void TakeEvent(NodeEvent told)
        {
            var turn = TurnOf(told.AgentId, 0, false);
            if (turn == null)
                return;
            var pairs = told.KvPairs.ConvertAll(pair => new KeyValuePair<string, string>(pair.Key, pair.Value));
            string name = JsonObject.ValueOf(pairs, "tool_name");
            if (told.EventType != "tool_call" || name.Length == 0)
            {
                Tell(turn, hear => Hear(hear.Event, told));
                return;
            }
            var call = new ToolCall { Node = told.NodeName, Name = name };
            call.ArgumentsJson = JsonObject.ValueOf(pairs, "arguments_json");
            call.Arguments = JsonObject.Members(call.ArgumentsJson);
            Tell(turn, hear => Hear(hear.ToolCall, call));
        }

        void TakeFormat(TtsAudioFormatFrame format)
        {
            var turn = TurnOf(format.AgentId, 0, false);
            if (turn == null)
                return;
            turn.SampleRate = format.SampleRate;
            turn.Channels = format.Channels;
        }

        void TakeSound(TtsAudioFrame frame)
        {
            var turn = TurnOf(frame.AgentId, 0, false);
            // Without a format it is no sound.
            if (turn == null || turn.SampleRate == 0 || turn.Channels == 0 || frame.Pcm.Length == 0)
                return;
            var sound = new Sound { Samples = frame.Pcm, SampleRate = turn.SampleRate, Channels = turn.Channels };
            Tell(turn, hear => Hear(hear.Sound, sound));
        }

        void TakeTiming(TtsTimingFrame timing)
        {
            var turn = TurnOf(timing.AgentId, 0, false);
            if (turn != null)
                Tell(turn, hear => Hear(hear.Timing, timing));
        }

        void TakeEnd(TurnComplete complete)
        {
            var turn = TurnOf(complete.AgentId, complete.RequestId, true);
            if (turn == null)
                return;
            EndTurn(turn, new TurnResult
            {
                Text = turn.Text.ToString(),
                Status = complete.Status,
                TokensGenerated = complete.TokensGenerated,
                TokensPrompt = complete.TokensPrompt,
                TokensCached = complete.TokensCached,
                DebugInfo = complete.DebugInfo
            }, null);
        }

        void EndTurn(Turn turn, TurnResult result, TryllException error)
        {
            if (turn.Over)
                return;
            turn.Over = true;
            turns.Remove(turn.RequestId);
            turn.Agent.Asked.Remove(turn);
            if (turn.Agent.Unasked == turn)
                turn.Agent.Unasked = null;
            try
            {
                Tell(turn, hear =>
                {
                    if (hear.Done != null)
                        hear.Done(result, error);
                });
            }
            finally
            {
                if (error != null)
                    turn.Source.TrySetException(error);
                else
                    turn.Source.TrySetResult(result);
            }
        }

        /// <summary>Nobody waits for this turn any longer: the server is told to stop, if it can.</summary>
        void GiveUp(Turn turn, TryllException error)
        {
            if (HasExtension("cancel"))
                Send(new CancelTurnRequest { RequestId = ++lastId, AgentId = turn.Agent.Id });
            EndTurn(turn, null, error);
        }

        void TakeUpdate(WireTranscriptUpdate update)
        {
            VoiceInput voice;
            if (!voices.TryGetValue(update.VoiceInputId, out voice))
                return;
            try
            {
                Hear(voice.Listening, update);
            }
            finally
            {
                if (update.Kind == TranscriptUpdateKind.UtteranceFinal)
                    voice.Utterance.Finish(update.Text);
            }
        }

        void TakeError(ErrorResponse message)
        {
            var error = new TryllException((int)message.Code, message.Message);
            Call call;
            Turn turn;
            // Whatever it was about, nothing that is said from now on is understood.
            if (error.Code == ErrorCode.ProtocolVersionMismatch)
                End(error, true);
            else if (calls.TryGetValue(message.RequestId, out call))
            {
                calls.Remove(message.RequestId);
                call.Fail(error);
            }
            else if (turns.TryGetValue(message.RequestId, out turn))
                EndTurn(turn, null, error);
            else if (message.RequestId == 0)
                TakeComplaint(message, error);
        }

        /// <summary>An error that no request is the reason of.</summary>
        void TakeComplaint(ErrorResponse message, TryllException error)
        {
            VoiceInput voice;
            Agent agent;
            if (error.Code == ErrorCode.UtteranceTimeout && voices.TryGetValue(message.VoiceInputId, out voice))
                voice.Utterance.Fail(error);
            else if (agents.TryGetValue(message.AgentId, out agent))
            {
                // What was said to the agent, it was not told.
                if (agent.Listening != null && agent.Listening.Done != null)
                    agent.Listening.Done(null, error);
            }
            else if (message.VoiceInputId == 0)
                reason = error;
        }

        void TakeProgress(DownloadProgress progress)
        {
            Call call;
            if (!calls.TryGetValue(progress.RequestId, out call))
                return;
            call.Deadline = Now + call.Seconds;
            Hear(call.Progress, progress);
        }

        void TakeAnswer(MessageBody body)
        {
            Call call;
            if (body.Request == 0)
                return;
            if (!calls.TryGetValue(body.Request, out call))
            {
                TooLate(body);
                return;
            }
            // What is called back may do anything, also with the rest of those who wait.
            calls.Remove(body.Request);
            long before = Epoch;
            if (call.Answer(body) || Epoch != before)
                return;
            call.Deadline = Now + call.Seconds;
            calls[body.Request] = call;
        }

        /// <summary>Whoever asked for it has given up.</summary>
        void TooLate(MessageBody body)
        {
            var agent = body as CreateAgentResponse;
            var voice = body as CreateVoiceInputResponse;
            if (agent != null)
                Send(new DestroyAgentRequest { RequestId = ++lastId, AgentId = agent.AgentId });
            if (voice != null)
                Send(new DestroyVoiceInputRequest { RequestId = ++lastId, VoiceInputId = voice.VoiceInputId });
        }
    }
}
