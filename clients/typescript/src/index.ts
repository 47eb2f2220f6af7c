/** A client for Trunkline's Tryll server, for browsers and node. TCP and `ManagedServer`: `trunkline-tryll/node`. */

export { Agent, type AgentListeners, type AgentOptions } from "./agent.js";
export {
  CONNECT_MS,
  Client,
  type EmbeddedOptions,
  type Reconnect,
  type SessionConfig,
  type StorageOptions,
  type StorageRequest,
  type ClientOptions,
} from "./client.js";
export { FrameError, Unsendable } from "./codec/errors.js";
export { decode, encode, frame, Framer, MAX_FRAME } from "./codec/frames.js";
export type { Init } from "./codec/init.js";
export type { Progress, RequestOptions } from "./connection.js";
export { TryllError, TurnFailed } from "./errors.js";
export type { IntentClassified, OtherEvent, Told, ToolCall } from "./events.js";
export { CODES, PROTOCOL_VERSION } from "./generated/errors.js";
export * from "./generated/messages.js";
export { MODEL_MS, REQUEST_MS } from "./replay.js";
export {
  webSocket,
  type Dial,
  type Receiver,
  type Transport,
  type WebSocketLike,
  type WebSocketMaker,
} from "./transport.js";
export {
  Reply,
  TURN_MS,
  type Mark,
  type SendOptions,
  type Sound,
  type Timing,
  type TextPiece,
  type Turn,
  type TurnEvent,
  type TurnListeners,
} from "./turn.js";
export { TRANSCRIPT_MS, VoiceInput, type UtteranceOptions, type VoiceOptions } from "./voice.js";
