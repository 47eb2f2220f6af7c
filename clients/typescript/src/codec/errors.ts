/** What a frame can be found to be. */

/** Bytes that are no message: 5001 Malformed, 5002 of an unknown kind, 5003 announced too large. */
export class FrameError extends Error {
  override readonly name = "FrameError";

  constructor(
    readonly code: 5001 | 5002 | 5003,
    message: string,
  ) {
    super(message);
  }
}

/** A message that no frame can carry: 5003 it is too large, 3007 a value is out of its range. */
export class Unsendable extends Error {
  override readonly name = "Unsendable";

  constructor(
    readonly code: 3007 | 5003,
    message: string,
  ) {
    super(message);
  }
}

export function malformed(message: string): FrameError {
  return new FrameError(5001, message);
}
