using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Trunkline.Tryll
{
    /// <summary>An agent of a session. It is gone with the connection that it was made on. Letting go of it does not
    /// destroy it.</summary>
    public sealed class Agent
    {
        internal readonly Session Session;
        internal readonly long Epoch;
        internal bool Destroyed;
        internal TurnCallbacks Listening;
        /// <summary>The turns that were asked for, and the one that the server has begun by itself.</summary>
        internal readonly List<Turn> Asked = new List<Turn>();
        internal Turn Unasked;

        internal Agent(Session session, ulong id)
        {
            Session = session;
            Id = id;
            Epoch = session.Epoch;
        }

        /// <summary>What the server calls it.</summary>
        public ulong Id { get; private set; }

        /// <summary>Begins a turn. To cancel the token is to call <see cref="Cancel"/>: the turn ends with that status,
        /// and its result is what was said.</summary>
        public Task<TurnResult> Send(
            string text, TurnCallbacks callbacks = null, CancellationToken token = default(CancellationToken))
        {
            callbacks = callbacks ?? new TurnCallbacks();
            var error = Unusable();
            if (error == null)
                return Session.BeginTurn(this, text, callbacks, token);
            if (callbacks.Done != null)
                callbacks.Done(null, error);
            return Session.Failed<TurnResult>(error);
        }

        /// <summary>Ends the turn that it is in.</summary>
        public Task Cancel()
        {
            var error = Unusable() ?? Session.Lacks("cancel", "stop a turn");
            return error != null
                ? Session.Failed<Ack>(error)
                : Ask(new CancelTurnRequest { AgentId = Id }, default(CancellationToken));
        }

        /// <summary>Gives a node other parameters: all of them, of the same kind.</summary>
        public Task Change(string node, NodeParams parameters, CancellationToken token = default(CancellationToken))
        {
            return Ask(new ChangeAgentParamRequest { AgentId = Id, NodeName = node, Params = parameters }, token);
        }

        /// <summary>The conversation, for a saved game.</summary>
        public Task<List<HistoryEntry>> History(CancellationToken token = default(CancellationToken))
        {
            var error = Unusable() ?? Session.Lacks("history", "give a conversation");
            return error != null
                ? Session.Failed<List<HistoryEntry>>(error)
                : Session.Collect<SaveHistoryResponse, HistoryEntry>(
                    new SaveHistoryRequest { AgentId = Id }, part => part.Entries, part => part.More, token);
        }

        /// <summary>Gives it a conversation: in place of its own, or after it.</summary>
        public Task Restore(
            IEnumerable<HistoryEntry> entries, bool append = false,
            CancellationToken token = default(CancellationToken))
        {
            var error = Unusable() ?? Session.Lacks("history", "take a conversation");
            if (error != null)
                return Session.Failed<Ack>(error);
            var request = new RestoreHistoryRequest { AgentId = Id, Append = append };
            request.Entries.AddRange(entries);
            return Ask(request, token);
        }

        /// <summary>Who hears all of its turns, also those that the server begins, besides whoever sent
        /// something.</summary>
        public void Listen(TurnCallbacks callbacks)
        {
            Listening = callbacks;
        }

        /// <summary>It is gone, and a turn of it ends as cancelled.</summary>
        public Task Destroy()
        {
            var error = Unusable();
            if (error != null)
                return Session.Failed<Ack>(error);
            Destroyed = true;
            var request = new DestroyAgentRequest { AgentId = Id };
            return Session.Ask<Ack, Ack>(request, Session.Options.RequestSeconds, answer =>
            {
                Session.Forget(this, new TryllException(ErrorCode.AgentAlreadyDestroyed));
                return answer;
            });
        }

        TryllException Unusable()
        {
            return Session.Unusable(Epoch, Destroyed, ErrorCode.AgentAlreadyDestroyed);
        }

        Task Ask(MessageBody request, CancellationToken token)
        {
            var error = Unusable();
            return error != null
                ? Session.Failed<Ack>(error)
                : Session.Ask<Ack, Ack>(request, Session.Options.RequestSeconds, answer => answer, null, token);
        }
    }
}
