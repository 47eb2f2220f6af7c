// Talks with Berta, who keeps a gate: Chat.exe [HOST:PORT] [MODEL]
//
// Without HOST:PORT it starts a server of its own, which ends with it; `trunkline` must be in PATH then. Without MODEL
// she runs on the mock engine, which repeats what you say, and opens the gate when you say `open_gate`. The smallest
// model, `smollm2-135m`, neither stays Berta nor opens the gate only when it should: see "Which model" in
// docs/how-to/serve-local-models-to-a-game.md.

using System;
using System.Globalization;
using Trunkline.Tryll;

static class Chat
{
    static int Main(string[] arguments)
    {
        try
        {
            using (var server = new ManagedServer())
                Talk(server, arguments);
            return 0;
        }
        catch (TryllException error)
        {
            Console.Error.WriteLine(error.Message + "\n" + error.Advice);
            return 1;
        }
    }

    static void Talk(ManagedServer server, string[] arguments)
    {
        var options = new ClientOptions();
        string address = null, model = null;
        foreach (string word in arguments)
        {
            // A model of a hub has a colon, too: ORG/REPO:FILE.
            if (word.Contains(":") && !word.Contains("/"))
                address = word;
            else
                model = word;
        }
        if (address != null)
        {
            options.Host = address.Substring(0, address.LastIndexOf(':'));
            options.Port = int.Parse(address.Substring(options.Host.Length + 1), CultureInfo.InvariantCulture);
        }
        else
        {
            server.Start();
            options.Host = server.Host;
            options.Port = server.Port;
        }
        if (model != null)
        {
            options.Config.InferenceEngine = InferenceEngine.LlamaCpp;
            options.Config.AllowAutoModelDownloading = true;
        }
        using (var client = new Client(options))
        {
            client.Wait(client.Connect());
            var berta = client.Wait(client.CreateAgent(Berta(), new AgentOptions
            {
                DefaultModel = model ?? "mock",
                Progress = progress => Console.Error.WriteLine("{0}: {1:0} %", progress.ModelName, progress.Percent)
            }));
            Console.Write("> ");
            for (string line = Console.ReadLine(); line != null; line = Console.ReadLine())
            {
                var turn = berta.Send(line, new TurnCallbacks
                {
                    Text = piece => Console.Write(piece),
                    ToolCall = call => Console.Write(call.Name == "open_gate" ? "* The gate opens." : "")
                });
                // A game draws here, once for each frame, and calls `client.Update()`.
                client.Wait(turn);
                Console.Write("\n> ");
            }
            Console.WriteLine();
        }
    }

    /// <summary>First a model decides whether to use a tool. If it does not, the next node answers.</summary>
    static GraphDescription Berta()
    {
        var tools = new ToolCallParams
        {
            Tools = { new ToolDefinition { Name = "open_gate", Description = "Opens the gate." } },
            NotifyClient = true,
            NoToolCalledExit = "answer"
        };
        var answer = new GenerateParams
        {
            SystemPrompt = "You are Berta, the keeper of a gate. Answer in one sentence.",
            Stream = true
        };
        return new GraphDescription
        {
            Nodes =
            {
                new NodeDescription { Name = "tools", Params = tools },
                new NodeDescription { Name = "answer", Params = answer }
            },
            StartNode = "tools"
        };
    }
}
