using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Trunkline.Tryll
{
    public sealed class ServerOptions
    {
        /// <summary>`trunkline`, looked for in PATH, or the path of `tryll-server` of a bundle.</summary>
        public string Program = "trunkline";
        /// <summary>What comes before `--listen`; for a bundle: none.</summary>
        public IEnumerable<string> Arguments = new[] { "tryll", "serve" };
        /// <summary>What comes behind the client's own.</summary>
        public IEnumerable<string> MoreArguments = new string[0];
        /// <summary>Where the server's words go. Empty: where the game's own go.</summary>
        public string LogFile = "";
        public double StartSeconds = 60;
        public double StopSeconds = 10;
    }

    /// <summary>A server that ends with the game, however the game ends: it watches a pipe that only the game
    /// holds.</summary>
    public sealed class ManagedServer : IDisposable
    {
        /// <summary>More is no line that a server writes.</summary>
        const int LongestLine = 64 << 10;
        /// <summary>How long the system may take to end a process that was killed.</summary>
        const int KillMilliseconds = 2000;

        readonly object gate = new object();
        Process process;
        double stopSeconds;
        bool outputEnded;

        public string Host { get; private set; }
        public int Port { get; private set; }

        public ManagedServer()
        {
            Host = "";
        }

        /// <summary>Its process id; 0 if there is none.</summary>
        public int Id { get { return process == null ? 0 : process.Id; } }

        /// <summary>Whether it is there.</summary>
        public bool Running { get { return process != null && !process.HasExited; } }

        /// <summary>Starts it, and waits until it is ready; blocks for so long.</summary>
        /// <exception cref="TryllException">ConnectionFailed, Timeout.</exception>
        public void Start(ServerOptions options = null)
        {
            options = options ?? new ServerOptions();
            Stop();
            stopSeconds = options.StopSeconds;
            outputEnded = false;
            var info = new ProcessStartInfo(options.Program)
            {
                UseShellExecute = false,
                CreateNoWindow = true,
                RedirectStandardInput = true,
                RedirectStandardOutput = true,
                RedirectStandardError = options.LogFile.Length > 0
            };
            info.Arguments = CommandLine.Of(Words(options));
            try
            {
                process = Process.Start(info);
            }
            catch (Win32Exception error)
            {
                throw new TryllException(ErrorCode.ConnectionFailed, "The server cannot be started: " + error.Message);
            }
            if (options.LogFile.Length > 0)
                Log(process, options.LogFile);
            var output = process.StandardOutput;
            new Thread(() => Listen(output)) { IsBackground = true, Name = "Tryll server" }.Start();
            var why = UntilReady(options.StartSeconds);
            if (why == null)
                return;
            Stop();
            throw why;
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
            Port = 0;
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
            words.AddRange(options.MoreArguments);
            return words;
        }

        static void Log(Process process, string path)
        {
            process.ErrorDataReceived += (sender, line) =>
            {
                if (line.Data != null)
                    File.AppendAllText(path, line.Data + "\n");
            };
            process.BeginErrorReadLine();
        }

        TryllException UntilReady(double seconds)
        {
            var clock = Stopwatch.StartNew();
            lock (gate)
            {
                while (Port == 0)
                {
                    double left = seconds - clock.Elapsed.TotalSeconds;
                    if (outputEnded)
                        return new TryllException(ErrorCode.ConnectionFailed, "The server ended before it was ready.");
                    if (left <= 0)
                        return new TryllException(ErrorCode.Timeout, "The server was not ready in time.");
                    Monitor.Wait(gate, TimeSpan.FromSeconds(Math.Min(left, 3600)));
                }
            }
            return null;
        }

        /// <summary>Reads what the server writes, to its end: a pipe that nobody empties would stop it.</summary>
        void Listen(TextReader output)
        {
            try
            {
                for (string line = Line(output); line != null; line = Line(output))
                    Take(line);
            }
            catch (Exception error) when (error is IOException || error is ObjectDisposedException)
            {
                // The game has closed it.
            }
            lock (gate)
            {
                outputEnded = true;
                Monitor.PulseAll(gate);
            }
        }

        static string Line(TextReader output)
        {
            var line = new StringBuilder();
            int each = output.Read();
            if (each < 0)
                return null;
            for (; each >= 0 && each != '\n'; each = output.Read())
                if (line.Length < LongestLine)
                    line.Append((char)each);
            return line.ToString();
        }

        void Take(string line)
        {
            var members = JsonObject.Members(line);
            int port;
            if (JsonObject.ValueOf(members, "type") != "ready")
                return;
            int.TryParse(JsonObject.ValueOf(members, "port"), NumberStyles.None, CultureInfo.InvariantCulture, out port);
            if (port <= 0 || port > 65535)
                return;
            lock (gate)
            {
                Host = JsonObject.ValueOf(members, "host");
                Port = port;
                Monitor.PulseAll(gate);
            }
        }
    }
}
