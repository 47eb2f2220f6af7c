using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
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
        /// <summary>How long the system may take to end a process that was killed.</summary>
        const int KillMilliseconds = 1000;
        /// <summary>How long the rest of what it has written may take: what it has started may hold its output open.</summary>
        const int DrainMilliseconds = 1000;

        Process process;
        ServerOutput output;
        double stopSeconds;

        public string Host { get; private set; }
        public int Port { get; private set; }
        /// <summary>Where it takes WebSockets; 0 if it does not.</summary>
        public int WsPort { get; private set; }

        public ManagedServer()
        {
            Host = "";
        }

        /// <summary>Its process id; 0 if there is none.</summary>
        public int Id { get { return process == null ? 0 : process.Id; } }

        /// <summary>Whether it is there.</summary>
        public bool Running { get { return process != null && !process.HasExited; } }

        /// <summary>Starts it, and waits until it is ready; blocks for so long.</summary>
        /// <exception cref="TryllException">ConnectionFailed, Timeout, with the last words of the server.</exception>
        public void Start(ServerOptions options = null)
        {
            options = options ?? new ServerOptions();
            Stop();
            stopSeconds = options.StopSeconds;
            var log = Log(options.LogFile);
            var info = new ProcessStartInfo(options.Program)
            {
                UseShellExecute = false,
                CreateNoWindow = true,
                RedirectStandardInput = true,
                RedirectStandardOutput = true,
                RedirectStandardError = true
            };
            info.Arguments = CommandLine.Of(Words(options));
            try
            {
                process = Process.Start(info);
            }
            catch (Win32Exception error)
            {
                if (log != null)
                    log.Dispose();
                throw new TryllException(ErrorCode.ConnectionFailed, "The server cannot be started: " + error.Message);
            }
            output = new ServerOutput(process, log);
            var reading = output;
            var why = reading.UntilReady(options.StartSeconds);
            if (why != null)
            {
                Stop();
                throw new TryllException(why.Code, why.Message + reading.LastWords());
            }
            Host = reading.Host;
            Port = reading.Port;
            WsPort = reading.WsPort;
        }

        /// <summary>The same, in the background: a game draws meanwhile.</summary>
        public Task StartAsync(ServerOptions options = null)
        {
            return Task.Run(() => Start(options));
        }

        /// <summary>Ends it, in no more than `StopSeconds` and two more.</summary>
        public void Stop()
        {
            var ending = process;
            process = null;
            Port = WsPort = 0;
            Host = "";
            if (ending == null)
                return;
            try
            {
                ending.StandardInput.Close();
            }
            catch (IOException)
            {
                // It does not read any more.
            }
            if (!ending.WaitForExit((int)(stopSeconds * 1000)))
            {
                try
                {
                    ending.Kill();
                }
                catch (InvalidOperationException)
                {
                    // It has just ended.
                }
                ending.WaitForExit(KillMilliseconds);
            }
            output.Drain(DrainMilliseconds);
            ending.Dispose();
        }

        public void Dispose()
        {
            Stop();
        }

        static IEnumerable<string> Words(ServerOptions options)
        {
            var words = new List<string>(options.Arguments);
            words.AddRange(new[] { "--listen", "127.0.0.1:0", "--exit-with-stdin", "--json" });
            if (options.Ws)
                words.AddRange(new[] { "--ws", "127.0.0.1:0" });
            words.AddRange(options.MoreArguments);
            return words;
        }

        static TextWriter Log(string path)
        {
            if (path.Length == 0)
                return null;
            try
            {
                return new StreamWriter(new FileStream(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite));
            }
            catch (Exception error) when (
                error is IOException || error is UnauthorizedAccessException || error is ArgumentException
                || error is NotSupportedException)
            {
                throw new TryllException(ErrorCode.ConnectionFailed, "The server's log cannot be written: " + error.Message);
            }
        }
    }
}
