using System;
using System.Collections.Generic;
using System.IO;
using System.Threading.Tasks;

namespace Trunkline.Tryll
{
    public sealed class ServerOptions
    {
        /// <summary>`trunkline`, looked for in PATH, or the path of `tryll-server` of a bundle.</summary>
        public string Program = "trunkline";
        /// <summary>What comes before `--listen`; for a bundle: none. `--config` keeps out what the user has configured
        /// for servers of their own.</summary>
        public IEnumerable<string> Arguments = new[]
        {
            "tryll", "serve", "--config", Path.DirectorySeparatorChar == '/' ? "/dev/null" : "NUL"
        };
        /// <summary>What comes behind the client's own.</summary>
        public IEnumerable<string> MoreArguments = new string[0];
        /// <summary>Whether it listens for WebSockets, too.</summary>
        public bool Ws;
        /// <summary>Where the server's words go, behind what the file has. Empty: where the game's own go.</summary>
        public string LogFile = "";
        public double StartSeconds = 60;
        public double StopSeconds = 10;
    }

    /// <summary>A server that ends with the game, however the game ends: it watches a pipe that only the game
    /// holds.</summary>
    public sealed class ManagedServer : IDisposable
    {
        readonly object gate = new object();
        ServerProcess server;
        /// <summary>Counts what was begun and ended: a start that finds another number is no longer wanted.</summary>
        int number;

        public string Host { get; private set; }
        public int Port { get; private set; }
        /// <summary>Where it takes WebSockets; 0 if it does not.</summary>
        public int WsPort { get; private set; }
        /// <summary>Where it tells its figures; 0 if it does not.</summary>
        public int MetricsPort { get; private set; }

        public ManagedServer()
        {
            Host = "";
        }

        /// <summary>Its process id; 0 if there is none.</summary>
        public int Id { get { lock (gate) return server == null ? 0 : server.Id; } }

        /// <summary>Whether it is there.</summary>
        public bool Running { get { lock (gate) return server != null && server.Running; } }

        /// <summary>Starts it, and waits until it is ready; blocks for so long. A server that was started before
        /// ends.</summary>
        /// <exception cref="TryllException">ConnectionFailed, Timeout, with the last words of the server;
        /// ConnectionFailed also if it was stopped meanwhile.</exception>
        public void Start(ServerOptions options = null)
        {
            int mine;
            var before = Take(out mine);
            Begin(options ?? new ServerOptions(), before, mine);
        }

        /// <summary>The same, in the background: a game draws meanwhile. `Stop` and `Dispose` end it at any time.</summary>
        public Task StartAsync(ServerOptions options = null)
        {
            int mine;
            // Here, so that a `Stop` from now on comes after it.
            var before = Take(out mine);
            return Task.Run(() => Begin(options ?? new ServerOptions(), before, mine));
        }

        /// <summary>Ends it, in no more than `StopSeconds` and two more.</summary>
        public void Stop()
        {
            int mine;
            var ending = Take(out mine);
            if (ending != null)
                ending.End();
        }

        public void Dispose()
        {
            Stop();
        }

        /// <summary>Gives the server that is there, if one is, to whoever ends it. Whoever is at starting one hears that
        /// it is not wanted any more.</summary>
        ServerProcess Take(out int mine)
        {
            lock (gate)
            {
                mine = ++number;
                var taken = server;
                server = null;
                Port = WsPort = MetricsPort = 0;
                Host = "";
                return taken;
            }
        }

        void Begin(ServerOptions options, ServerProcess before, int mine)
        {
            if (before != null)
                before.End();
            lock (gate)
                if (number != mine)
                    throw Stopped();
            var started = new ServerProcess(options);
            bool wanted;
            lock (gate)
            {
                wanted = number == mine;
                if (wanted)
                    server = started;
            }
            if (!wanted)
            {
                started.End();
                throw Stopped();
            }
            var output = started.Output;
            var why = output.UntilReady(options.StartSeconds);
            lock (gate)
            {
                // Whoever has taken it ends it.
                if (number != mine)
                    throw Stopped();
                if (why == null)
                {
                    Host = output.Host;
                    Port = output.Port;
                    WsPort = output.WsPort;
                    MetricsPort = output.MetricsPort;
                    return;
                }
                server = null;
            }
            started.End();
            throw new TryllException(why.Code, why.Message + output.LastWords());
        }

        static TryllException Stopped()
        {
            return new TryllException(ErrorCode.ConnectionFailed, "The server was stopped before it was ready.");
        }
    }
}
