// Plays with the sample's character, as the engine would: Start once, Update for each frame. Says what the text shows.

using System;
using System.Globalization;
using System.Reflection;
using System.Threading;
using UnityEngine.UI;

static class Game
{
    static TalkingCharacter character;

    static int Main(string[] arguments)
    {
        character = new TalkingCharacter { port = int.Parse(arguments[0], CultureInfo.InvariantCulture), answer = new Text { text = "" } };
        string opened = null;
        character.tools[0].called.AddListener(json => opened = json);
        character.failed.AddListener(why => { Console.Error.WriteLine(why); Environment.Exit(1); });
        Send("Start");
        Until(() => Agent() != null);
        character.Say("Good evening");
        Until(() => character.answer.text == "You said: Good evening");
        Console.WriteLine(character.answer.text);
        character.Say("open_gate, please");
        Until(() => opened != null);
        Console.WriteLine("called " + opened);
        // In the middle of a turn: nothing has failed.
        character.Say("And now?");
        Send("OnDestroy");
        return 0;
    }

    static void Until(Func<bool> so)
    {
        while (!so())
        {
            Send("Update");
            Thread.Sleep(1);
        }
    }

    static object Agent()
    {
        return typeof(TalkingCharacter).GetField("agent", BindingFlags.NonPublic | BindingFlags.Instance).GetValue(character);
    }

    // The engine calls these by their names, too.
    static void Send(string message)
    {
        typeof(TalkingCharacter).GetMethod(message, BindingFlags.NonPublic | BindingFlags.Instance).Invoke(character, null);
    }
}
