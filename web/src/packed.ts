// What an element of the page has compressed, in base64.

function stream(element: string): Response {
  const text = document.getElementById(element)?.textContent ?? "";
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

export function unpacked(element: string): Promise<ArrayBuffer> {
  return stream(element).arrayBuffer();
}

export function unpackedJson<T>(element: string): Promise<T> {
  return stream(element).json() as Promise<T>;
}
