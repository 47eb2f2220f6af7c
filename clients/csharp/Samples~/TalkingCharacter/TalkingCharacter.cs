using System;
using System.Collections.Generic;
using Trunkline.Tryll;
using UnityEngine;
using UnityEngine.Events;
using UnityEngine.UI;

/// <summary>A character who answers, and does things. Put it on an object, name a text and an input field, and let the
/// field's `On Submit` call `Say`.</summary>
public sealed class TalkingCharacter : MonoBehaviour
{
    /// <summary>A tool, and what happens when the character wants it. The event gets the arguments as JSON.</summary>
    [Serializable]
    public sealed class Tool
    {
        public string name = "open_gate";
        public string description = "Opens the gate.";
        public UnityEvent<string> called = new UnityEvent<string>();
    }

    [Header("Server")]
    [Tooltip("Empty: `trunkline` in PATH. Otherwise the path of a bundle's `tryll-server`. It ends with the game.")]
    public string program = "";
    [Tooltip("A server that is there already, in place of one of the game's own. 0: none.")]
    public int port;

    [Header("Character")]
    [TextArea] public string systemPrompt = "You are Berta, the keeper of a gate. Answer in one sentence.";
    [Tooltip("Empty: the mock engine, which repeats what it hears.")]
    public string model = "";
    public List<Tool> tools = new List<Tool> { new Tool() };

    [Header("What is heard")]
    [Tooltip("Grows while the character answers.")]
    public Text answer;
    public UnityEvent<string> failed = new UnityEvent<string>();

    ManagedServer server;
    Client client;
    Agent agent;
    bool over;

    async void Start()
    {
        try
        {
            var options = new ClientOptions { Port = port };
            if (port == 0)
            {
                server = new ManagedServer();
                await server.StartAsync(Served());
                options.Port = server.Port;
            }
            if (model.Length > 0)
            {
                options.Config.InferenceEngine = InferenceEngine.LlamaCpp;
                options.Config.AllowAutoModelDownloading = true;
            }
            // The object may be gone by now: then nobody needs a client.
            if (over)
                return;
            client = new Client(options);
            client.Connected += again => Appear();
            client.Lost += (error, isFinal) => Fail(error.Message);
            await client.Connect();
        }
        catch (TryllException error)
        {
            Fail(error.Message + " " + error.Advice);
        }
    }

    // Everything that comes from the server comes here: callbacks, and what is awaited.
    void Update()
    {
        if (client != null)
            client.Update();
    }

    void OnDestroy()
    {
        over = true;
        if (client != null)
            client.Dispose();
        if (server != null)
            server.Dispose();
    }

    /// <summary>For the input field's `On Submit`.</summary>
    public void Say(string line)
    {
        if (agent == null)
            return;
        answer.text = "";
        agent.Send(line, new TurnCallbacks
        {
            Text = piece => answer.text += piece,
            ToolCall = Call,
            Done = (result, error) =>
            {
                if (error != null)
                    Fail(error.Message);
            }
        });
    }

    // What is still awaited when the object goes fails, and nobody is there to hear of it.
    void Fail(string why)
    {
        if (!over)
            failed.Invoke(why);
    }

    ServerOptions Served()
    {
        var options = new ServerOptions();
        if (program.Length == 0)
            return options;
        options.Program = program;
        options.Arguments = new string[0];
        return options;
    }

    /// <summary>Also after a lost connection, which takes the old agent with it.</summary>
    async void Appear()
    {
        try
        {
            agent = null;
            var options = new AgentOptions { DefaultModel = model.Length > 0 ? model : "mock" };
            agent = await client.CreateAgent(Graph(), options);
        }
        catch (TryllException error)
        {
            Fail(error.Message + " " + error.Advice);
        }
    }

    void Call(ToolCall call)
    {
        foreach (var tool in tools)
            if (tool.name == call.Name)
                tool.called.Invoke(call.ArgumentsJson);
    }

    /// <summary>First a model decides whether to use a tool. If it does not, the next node answers.</summary>
    GraphDescription Graph()
    {
        var choose = new ToolCallParams { NotifyClient = true, NoToolCalledExit = "answer" };
        foreach (var tool in tools)
            choose.Tools.Add(new ToolDefinition { Name = tool.name, Description = tool.description });
        var say = new GenerateParams { SystemPrompt = systemPrompt, Stream = true };
        return new GraphDescription
        {
            Nodes =
            {
                new NodeDescription { Name = "tools", Params = choose },
                new NodeDescription { Name = "answer", Params = say }
            },
            StartNode = tools.Count > 0 ? "tools" : "answer"
        };
    }
}
