using System;
using System.Collections.Generic;

namespace Trunkline.Tryll
{
    /// <summary>How a lost connection is tried again.</summary>
    public sealed class Reconnect
    {
        /// <summary>0: never.</summary>
        public int Attempts = 6;
        public double FirstSeconds = 0.1;
        public double LongestSeconds = 5;
    }

    public sealed class ClientOptions
    {
        public string Host = "127.0.0.1";
        public int Port = 9100;
        /// <summary>The address of a WebSocket, such as `ws://127.0.0.1:9101`, in place of host and port.</summary>
        public string WebSocket = "";
        /// <summary>Engines, token, and so on. All engines are Mock, unless something else is said.</summary>
        public ConfigureSessionRequest Config = new ConfigureSessionRequest();
        public Reconnect Reconnect = new Reconnect();
        public double ConnectSeconds = 30;
        public double RequestSeconds = 30;
        public double ModelSeconds = 300;
        public double TurnSeconds = 120;
    }

    public sealed class AgentOptions
    {
        public string DefaultModel = "";
        /// <summary>Whether `TurnResult.DebugInfo` is told.</summary>
        public bool Diagnostics;
        /// <summary>0: as the server has it.</summary>
        public uint MaxSteps;
        public Action<DownloadProgress> Progress;
    }

    public sealed class StorageOptions
    {
        /// <summary>As many as there are strings. With keys, and without a kind, it is a Map.</summary>
        public IEnumerable<string> Keys = new string[0];
        /// <summary>One of <see cref="StringStorageKind"/>.</summary>
        public byte? Kind;
        /// <summary>A file of the server's, in place of strings.</summary>
        public string FilePath = "";
    }

    public sealed class EmbeddedStorageOptions
    {
        public string EmbeddingModel = "";
        public string ConfigPath = "";
        /// <summary>A JSON object with `records` and `fields`, in place of strings.</summary>
        public string RecordsJson = "";
        /// <summary>A file of the server in which agents keep what they write down.</summary>
        public string MemoryPath = "";
        public Action<DownloadProgress> Progress;
    }

    public sealed class UtteranceOptions
    {
        /// <summary>Who is told what was said. Its answer goes to those who listen to it.</summary>
        public Agent Agent;
        /// <summary>Whether a pause after speech ends the utterance.</summary>
        public bool HandsFree;
        public uint MaxMs = 60000;
        /// <summary>Whether speech ends a turn of the agent.</summary>
        public bool BargeIn = true;
    }

    /// <summary>Where a client is.</summary>
    public enum Connection
    {
        Idle,
        Connecting,
        Ready,
        Waiting
    }
}
