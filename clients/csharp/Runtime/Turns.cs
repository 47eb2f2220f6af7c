using System;
using System.Collections.Generic;

namespace Trunkline.Tryll
{
    /// <summary>A model wants to call a tool. Its name and its arguments are the model's: check them.</summary>
    public sealed class ToolCall
    {
        public string Node = "";
        public string Name = "";
        /// <summary>Names and values, in the model's order. Values that are not texts are as they stand in the
        /// JSON.</summary>
        public List<KeyValuePair<string, string>> Arguments = new List<KeyValuePair<string, string>>();
        public string ArgumentsJson = "";

        /// <summary>The value of an argument, or "".</summary>
        public string Argument(string name)
        {
            return JsonObject.ValueOf(Arguments, name);
        }
    }

    /// <summary>A piece of a voice: 16-bit samples, of all channels in turns.</summary>
    public sealed class Sound
    {
        public short[] Samples = new short[0];
        public uint SampleRate;
        public ushort Channels = 1;
    }

    /// <summary>How a turn went. Whatever its status is, the text is what was said.</summary>
    public sealed class TurnResult
    {
        public string Text = "";
        /// <summary>One of <see cref="TurnStatus"/>.</summary>
        public byte Status;
        public int TokensGenerated;
        public int TokensPrompt;
        public int TokensCached;
        /// <summary>JSON, for agents that were made with `Diagnostics`.</summary>
        public string DebugInfo = "";

        public bool Succeeded { get { return Status == TurnStatus.Success; } }
        public bool Cancelled { get { return Status == TurnStatus.Cancelled; } }
    }

    /// <summary>Who hears a turn. All of them may be absent.</summary>
    public sealed class TurnCallbacks
    {
        /// <summary>The next piece of the answer.</summary>
        public Action<string> Text;
        /// <summary>The answer is something else than what was said so far.</summary>
        public Action<string> Replaced;
        public Action<ToolCall> ToolCall;
        /// <summary>What else a node tells, for instance `intent_classified`.</summary>
        public Action<NodeEvent> Event;
        public Action<Sound> Sound;
        /// <summary>When what is spoken; before the sound that it is about.</summary>
        public Action<TtsTimingFrame> Timing;
        /// <summary>Once, the last: the result, or the error and no result.</summary>
        public Action<TurnResult, TryllException> Done;
    }
}
