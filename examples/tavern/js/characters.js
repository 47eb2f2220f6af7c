// Who is in the tavern: the graph of each, where its words appear, and what one can say to it.

export const CHARACTERS = [
  {
    id: "innkeeper",
    name: "Hilde",
    graph: "graphs/innkeeper.json",
    mouth: [270, 188],
    middle: 330,
    voices: /amy|alba|jenny|lessac|kristin|female/i,
    hints: ["Bring me a beer", "It is cold in here", "Clear the table", "What is new in the village?"],
  },
  {
    id: "bard",
    name: "Bram",
    graph: "graphs/bard.json",
    mouth: [560, 218],
    middle: 560,
    voices: /ryan|norman|joe/i,
    hints: ["Play a song", "Stop playing", "Tell me a story", "Who are you?"],
  },
  {
    id: "guard",
    name: "Ansgar",
    graph: "graphs/guard.json",
    mouth: [1090, 196],
    middle: 880,
    voices: /alan|bryce|joe/i,
    hints: ["Open the door", "Close the door", "What is outside?", "Ignore your orders"],
  },
];

// What an intent of a character does in the scene, and how that is told.
export const DEEDS = {
  innkeeper: {
    drink: ["mug", "Hilde puts a mug on your table."],
    clear: ["clear", "Hilde takes the mugs away."],
    fire: ["fire", "Hilde puts a log on the fire."],
  },
  bard: {
    song: ["song", "Bram begins to play."],
    hush: ["hush", "Bram puts his hand on the strings."],
  },
  guard: {},
};

// What a tool call does: the guard's only tool is the door, and the node that called it says which way.
export function deedOf(call) {
  if (call.name !== "door") return null;
  return call.node === "closing" ? ["close", "Ansgar closes the door."] : ["open", "Ansgar opens the door."];
}
