// Arrays of numbers that came as base64, little endian.

const sextets = (() => {
  const table = new Uint8Array(256);
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".split("")
    .forEach((letter, at) => { table[letter.charCodeAt(0)] = at; });
  return table;
})();

function bytes_of_base64(text) {
  text = text || "";
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  let letters = text.length;
  while (letters && text[letters - 1] === "=") --letters;
  const bytes = new Uint8Array(Math.floor(letters * 3 / 4));
  let to = 0;
  for (let at = 0; at < letters; at += 4) {
    const word = (sextets[text.charCodeAt(at)] << 18) | (sextets[text.charCodeAt(at + 1)] << 12) |
      (at + 2 < letters ? sextets[text.charCodeAt(at + 2)] << 6 : 0) | (at + 3 < letters ? sextets[text.charCodeAt(at + 3)] : 0);
    bytes[to++] = word >> 16;
    bytes[to++] = word >> 8;
    bytes[to++] = word;
  }
  return bytes;
}

/** At most `count` numbers; machines that run browsers are little endian, as the file is. */
function numbers_of(text, Type, count = Infinity) {
  const bytes = bytes_of_base64(text);
  const whole = Math.min(count, Math.floor(bytes.length / Type.BYTES_PER_ELEMENT));
  return new Type(bytes.buffer, bytes.byteOffset, whole);
}
