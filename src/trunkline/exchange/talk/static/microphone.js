// The browser's microphone.

// Opens it; heard(pcm, level) is called for each piece of sound. Gives a function that closes it.
export async function openMicrophone(context, heard, lost) {
  if (!navigator.mediaDevices?.getUserMedia) throw new Error("This browser gives pages no microphone.");
  const wanted = { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
  const stream = await navigator.mediaDevices.getUserMedia({ audio: wanted, video: false });
  try {
    await context.audioWorklet.addModule("/static/capture.js");
  } catch (error) {
    for (const track of stream.getTracks()) track.stop();
    throw error;
  }
  const source = context.createMediaStreamSource(stream);
  const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
  capture.port.onmessage = ({ data }) => heard(data.pcm, data.level);
  source.connect(capture);
  for (const track of stream.getTracks()) track.addEventListener("ended", lost);
  return () => {
    capture.port.onmessage = null;
    source.disconnect();
    for (const track of stream.getTracks()) track.stop();
  };
}

// What to tell somebody whose microphone cannot be used. Nothing is lost by it: one can type.
export function whyNot(error) {
  switch (error.name) {
    case "NotAllowedError":
    case "SecurityError":
      return "The browser does not let this page use the microphone. Allow it in the address bar, or type below.";
    case "NotFoundError":
    case "OverconstrainedError":
      return "No microphone was found. Plug one in and try again, or type below.";
    case "NotReadableError":
    case "AbortError":
      return "The microphone is in use by another program. Close that and try again, or type below.";
    default:
      return `The microphone cannot be used (${error.message || error.name}). You can type below.`;
  }
}
