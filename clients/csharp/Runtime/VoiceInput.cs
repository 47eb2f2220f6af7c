using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Trunkline.Tryll
{
    /// <summary>An ear of a session. It is gone with the connection that it was made on.</summary>
    public sealed class VoiceInput
    {
        /// <summary>A second of 16 kHz: far from what a frame carries, and soon sent.</summary>
        const int FrameSamples = 16000;

        internal readonly Session Session;
        internal readonly long Epoch;
        internal bool Destroyed;
        internal Action<WireTranscriptUpdate> Listening;
        internal Utterance Utterance = Utterance.Before();

        internal VoiceInput(Session session, ulong id)
        {
            Session = session;
            Id = id;
            Epoch = session.Epoch;
        }

        /// <summary>What the server calls it.</summary>
        public ulong Id { get; private set; }

        /// <summary>Listens from now on.</summary>
        public Task Begin(UtteranceOptions options = null, CancellationToken token = default(CancellationToken))
        {
            options = options ?? new UtteranceOptions();
            var request = new BeginUtteranceRequest
            {
                VoiceInputId = Id,
                AgentId = options.Agent == null ? 0 : options.Agent.Id,
                AutoFinishOnSilence = options.HandsFree,
                MaxUtteranceMs = options.MaxMs,
                BargeIn = options.BargeIn
            };
            return Ask(request, Session.Options.RequestSeconds, token, () =>
            {
                // The last words of the one before come until then.
                Utterance.Fail(new TryllException(ErrorCode.NoActiveUtterance, "The utterance is over."));
                Utterance = new Utterance();
            });
        }

        /// <summary>Lets it hear samples of all channels in turns. Nothing answers.</summary>
        /// <exception cref="TryllException">The connection is lost.</exception>
        public void Send(short[] samples)
        {
            Send(samples, 0, samples.Length);
        }

        /// <summary>The same, with some of the samples.</summary>
        public void Send(short[] samples, int offset, int count)
        {
            var error = Unusable();
            for (int end = offset + count; error == null && offset < end; offset += FrameSamples)
            {
                var part = new short[Math.Min(FrameSamples, end - offset)];
                Array.Copy(samples, offset, part, 0, part.Length);
                error = Session.Send(new AudioBufferFrame { VoiceInputId = Id, Pcm = part });
            }
            if (error != null)
                throw error;
        }

        /// <summary>Takes what was heard: the text of the utterance, "" if nothing was understood.</summary>
        public Task<string> End()
        {
            var error = Unusable();
            if (error != null)
                return Session.Failed<string>(error);
            var utterance = Utterance;
            var heard = utterance.Heard();
            if (heard.Task.IsCompleted)
                return heard.Task;
            // The last words may come before that is acknowledged, or after it.
            Session.Begin(
                new EndUtteranceRequest { VoiceInputId = Id },
                new Call
                {
                    Seconds = Session.Options.TurnSeconds,
                    Answer = answer => true,
                    Fail = why =>
                    {
                        // It may have ended by itself just before.
                        if (why.Code != ErrorCode.NoActiveUtterance || !utterance.Over)
                            heard.TrySetException(why);
                    }
                });
            return heard.Task;
        }

        /// <summary>Waits for an utterance that ends by itself. Nothing limits that but the connection.</summary>
        public Task<string> Transcript()
        {
            var error = Unusable();
            return error != null ? Session.Failed<string>(error) : Utterance.Heard().Task;
        }

        /// <summary>Forgets what was heard.</summary>
        public Task Cancel()
        {
            var utterance = Utterance;
            var request = new CancelUtteranceRequest { VoiceInputId = Id };
            return Ask(request, Session.Options.RequestSeconds, default(CancellationToken),
                () => utterance.Fail(new TryllException(ErrorCode.NoActiveUtterance, "The utterance was cancelled.")));
        }

        /// <summary>Who hears what is understood, as it comes.</summary>
        public void Listen(Action<WireTranscriptUpdate> callback)
        {
            Listening = callback;
        }

        public Task Destroy()
        {
            var request = new DestroyVoiceInputRequest { VoiceInputId = Id };
            var asked = Ask(request, Session.Options.RequestSeconds, default(CancellationToken),
                () => Session.Forget(
                    this, new TryllException(ErrorCode.VoiceInputNotFound, "The voice input was destroyed.")));
            Destroyed = true;
            return asked;
        }

        TryllException Unusable()
        {
            return Session.Unusable(Epoch, Destroyed, ErrorCode.VoiceInputNotFound);
        }

        Task Ask(MessageBody request, double seconds, CancellationToken token, Action then)
        {
            var error = Unusable();
            if (error != null)
                return Session.Failed<Ack>(error);
            return Session.Ask<Ack, Ack>(request, seconds, answer =>
            {
                then();
                return answer;
            }, null, token);
        }
    }

    /// <summary>From `Begin` to its last words.</summary>
    internal sealed class Utterance
    {
        readonly List<TaskCompletionSource<string>> waiting = new List<TaskCompletionSource<string>>();
        string text;
        TryllException error;

        public bool Over { get; private set; }

        /// <summary>What there is to hear before the first one.</summary>
        public static Utterance Before()
        {
            var utterance = new Utterance();
            utterance.Fail(new TryllException(ErrorCode.NoActiveUtterance, "The voice input is not listening."));
            return utterance;
        }

        public TaskCompletionSource<string> Heard()
        {
            var source = Tasks.Source<string>();
            if (Over)
                Tell(source);
            else
                waiting.Add(source);
            return source;
        }

        public void Finish(string found)
        {
            End(found, null);
        }

        public void Fail(TryllException why)
        {
            End(null, why);
        }

        void End(string found, TryllException why)
        {
            if (Over)
                return;
            Over = true;
            text = found;
            error = why;
            foreach (var each in waiting.ToArray())
                Tell(each);
            waiting.Clear();
        }

        void Tell(TaskCompletionSource<string> source)
        {
            if (error != null)
                source.TrySetException(error);
            else
                source.TrySetResult(text);
        }
    }
}
