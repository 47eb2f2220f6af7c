using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
using System.IO;
using System.Security;

namespace Trunkline.Tryll
{
    /// <summary>A server's process, from its start to its end.</summary>
    internal sealed class ServerProcess
    {
        /// <summary>How long the system may take to end a process that was killed.</summary>
        const int KillMilliseconds = 1000;
        /// <summary>How long the rest of what it has written may take: what it has started may hold its output open.</summary>
        const int DrainMilliseconds = 1000;

        readonly Process process;
        readonly double stopSeconds;

        public readonly ServerOutput Output;

        /// <exception cref="TryllException">ConnectionFailed: there is none.</exception>
        public ServerProcess(ServerOptions options)
        {
            stopSeconds = options.StopSeconds;
            var log = Log(options.LogFile);
            try
            {
                process = Process.Start(Described(options));
            }
            catch (Exception error) when (
                error is Win32Exception || error is InvalidOperationException || error is NotSupportedException)
            {
                throw new TryllException(ErrorCode.ConnectionFailed, "The server cannot be started: " + error.Message);
            }
            finally
            {
                if (process == null && log != null)
                    log.Dispose();
            }
            Output = new ServerOutput(process, log);
        }

        public int Id { get { return process.Id; } }

        public bool Running { get { return !process.HasExited; } }

        /// <summary>Ends it. Once.</summary>
        public void End()
        {
            try
            {
                process.StandardInput.Close();
            }
            catch (IOException)
            {
                // It does not read any more.
            }
            if (!process.WaitForExit(Milliseconds(stopSeconds)))
            {
                try
                {
                    process.Kill();
                }
                catch (Exception error) when (error is InvalidOperationException || error is Win32Exception)
                {
                    // It has just ended.
                }
                process.WaitForExit(KillMilliseconds);
            }
            Output.Drain(DrainMilliseconds);
            process.Dispose();
        }

        /// <summary>As many as a wait takes: 24 days at most.</summary>
        static int Milliseconds(double seconds)
        {
            // What is no number is no time.
            return seconds > 0 ? (int)Math.Min(seconds * 1000, int.MaxValue) : 0;
        }

        static ProcessStartInfo Described(ServerOptions options)
        {
            return new ProcessStartInfo(options.Program)
            {
                Arguments = CommandLine.Of(Words(options)),
                UseShellExecute = false,
                CreateNoWindow = true,
                RedirectStandardInput = true,
                RedirectStandardOutput = true,
                RedirectStandardError = true
            };
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
            if (string.IsNullOrEmpty(path))
                return null;
            try
            {
                return new StreamWriter(new FileStream(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite));
            }
            catch (Exception error) when (
                error is IOException || error is UnauthorizedAccessException || error is ArgumentException
                || error is NotSupportedException || error is SecurityException)
            {
                throw new TryllException(ErrorCode.ConnectionFailed, "The server's log cannot be written: " + error.Message);
            }
        }
    }
}
