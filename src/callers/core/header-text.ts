import { isUtf8 } from 'node:buffer';

const ENCODED_WORD = /=\?([\w-]{1,40})(?:\*[\w-]{1,20})?\?([bq])\?([^?\s]*)\?=(?:[ \t]+(?==\?))?/gi;
// oxlint-disable-next-line no-control-regex
const LATIN1_ONLY = /^[\u0000-\u00ff]*$/;
// oxlint-disable-next-line no-control-regex
const BEYOND_ASCII = /[^\u0000-\u007f]/;

/**
 * Decodes the value of an HTTP header. Node.js returns UTF-8 bytes as Latin-1 characters, and some senders use the
 * encoded words of e-mail (`=?utf-8?…?=`).
 */
export function headerText(value: string): string {
  const text = value.includes('=?') ? value.replace(ENCODED_WORD, decodeWord) : value;
  if (!BEYOND_ASCII.test(text) || !LATIN1_ONLY.test(text)) return text;
  const bytes = Buffer.from(text, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : text;
}

/** Decodes an encoded word of e-mail. A word with an unknown charset is returned unchanged. */
function decodeWord(word: string, charset: string, encoding: string, content: string): string {
  const bytes = encoding.toLowerCase() === 'b' ? Buffer.from(content, 'base64') : quotedBytes(content);
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return word;
  }
}

function quotedBytes(content: string): Buffer {
  const latin1Text = content
    .replaceAll('_', ' ')
    .replace(/=([\da-f]{2})/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
  return Buffer.from(latin1Text, 'latin1');
}
