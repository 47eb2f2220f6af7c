using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Text;
using System.Threading;

namespace Trunkline.Tryll
{
    /// <summary>What a server writes, read to its end by threads of its own: a pipe that nobody empties would stop
    /// it.</summary>
    internal sealed class ServerOutput
    {
        /// <summary>More is no line that a server writes.</summary>
        const int LongestLine = 64 << 10;
        /// <summary>The last lines of its log, for whoever wants to know why it did not start.</summary>
        const int KeptLines = 20;
        const int KeptOfLine = 1000;

        readonly object gate = new object();
        readonly Queue<string> last = new Queue<string>();
        readonly Thread listening, logging;
        TextWriter log;
        bool ended;

        /// <summary>Takes the log over, and closes it; without one, the server's words go where the game's own go.</summary>
        public ServerOutput(Process process, TextWriter logFile)
        {
            log = logFile;
            Host = "";
            TextReader output = process.StandardOutput, errors = process.StandardError;
            listening = Reading("Tryll server", () => Each(output, Take), End);
            logging = Reading("Tryll server's log", () => Each(errors, Keep), Close);
        }

        public string Host { get; private set; }
        public int Port { get; private set; }
        public int WsPort { get; private set; }
        public int MetricsPort { get; private set; }

        /// <summary>The end of its log, for the end of an error.</summary>
        public string LastWords()
        {
            lock (gate)
                return last.Count > 0 ? " Its last words: " + string.Join("\n", last.ToArray()) : "";
        }

        /// <summary>Waits until it says that it is ready. What is wrong if it does not; null if it does.</summary>
        public TryllException UntilReady(double seconds)
        {
            var clock = Stopwatch.StartNew();
            lock (gate)
            {
                while (Port == 0)
                {
                    double left = seconds - clock.Elapsed.TotalSeconds;
                    if (ended)
                        return new TryllException(ErrorCode.ConnectionFailed, "The server ended before it was ready.");
                    if (left <= 0)
                        return new TryllException(ErrorCode.Timeout, "The server was not ready in time.");
                    Monitor.Wait(gate, TimeSpan.FromSeconds(Math.Min(left, 3600)));
                }
            }
            return null;
        }

        /// <summary>Waits, for no longer than that, until all is read that an ended server has written. What comes later
        /// is no word of its own.</summary>
        public void Drain(int milliseconds)
        {
            var clock = Stopwatch.StartNew();
            listening.Join(milliseconds);
            logging.Join(Math.Max(0, milliseconds - (int)clock.ElapsedMilliseconds));
            End();
        }

        static Thread Reading(string name, Action read, Action end)
        {
            var thread = new Thread(() =>
            {
                try
                {
                    read();
                }
                catch (Exception error) when (error is IOException || error is ObjectDisposedException)
                {
                    // The game has closed it.
                }
                end();
            });
            thread.IsBackground = true;
            thread.Name = name;
            thread.Start();
            return thread;
        }

        static void Each(TextReader reader, Action<string> take)
        {
            var line = new StringBuilder();
            for (int each = reader.Read(); each >= 0; each = reader.Read())
            {
                if (each == '\n')
                {
                    take(line.ToString());
                    line.Length = 0;
                }
                else if (line.Length < LongestLine)
                    line.Append((char)each);
            }
            if (line.Length > 0)
                take(line.ToString());
        }

        void Take(string line)
        {
            var members = JsonObject.Members(line);
            if (JsonObject.ValueOf(members, "type") != "ready")
                return;
            int port = PortOf(members, "port");
            string host = JsonObject.ValueOf(members, "host");
            if (port == 0 || host.Length == 0)
                return;
            lock (gate)
            {
                Host = host;
                WsPort = PortOf(members, "ws_port");
                MetricsPort = PortOf(members, "metrics_port");
                Port = port;
                Monitor.PulseAll(gate);
            }
        }

        static int PortOf(List<KeyValuePair<string, string>> members, string name)
        {
            int port;
            string text = JsonObject.ValueOf(members, name);
            bool read = int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out port);
            return read && port <= 65535 ? port : 0;
        }

        void Keep(string line)
        {
            line = line.TrimEnd('\r');
            lock (gate)
            {
                last.Enqueue(line.Length > KeptOfLine ? line.Substring(0, KeptOfLine) : line);
                if (last.Count > KeptLines)
                    last.Dequeue();
            }
            try
            {
                var words = log ?? Console.Error;
                words.WriteLine(line);
                words.Flush();
            }
            catch (IOException)
            {
                // A disk that is full, or a terminal that is gone, is no reason to stop the server.
            }
        }

        void End()
        {
            lock (gate)
            {
                ended = true;
                Monitor.PulseAll(gate);
            }
        }

        void Close()
        {
            if (log == null)
                return;
            try
            {
                log.Dispose();
            }
            catch (IOException)
            {
                // What could not be written is lost.
            }
        }
    }
}
