/**
 * Reads S3's answers: XML elements with text or elements in them, a few levels deep. These functions are no XML parser.
 * They ignore declarations, so that there are no entities to expand. Their callers limit the size of answers.
 */

const XML_ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

/** The content of each element of this name, in order; elements must not contain elements of the same name. */
export function elementContents(xml: string, name: string): string[] {
  const contents: string[] = [];
  let searchStart = 0;
  for (;;) {
    const openingTag = findOpeningTag(xml, name, searchStart);
    if (openingTag === null) return contents;
    if (openingTag.isSelfClosing) {
      contents.push('');
      searchStart = openingTag.end;
      continue;
    }
    const closingTagAt = xml.indexOf(`</${name}>`, openingTag.end);
    if (closingTagAt === -1) return contents;
    contents.push(xml.slice(openingTag.end, closingTagAt));
    searchStart = closingTagAt + name.length + 3;
  }
}

/** The text of the first element with this name; null: there is none. */
export function firstElementText(xml: string, name: string): string | null {
  const [first] = elementContents(xml, name);
  return first === undefined ? null : decodeCharacterReferences(first);
}

/** Escapes a text for use in an XML document. */
export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function findOpeningTag(xml: string, name: string, from: number): { end: number; isSelfClosing: boolean } | null {
  let searchAt = from;
  for (;;) {
    searchAt = xml.indexOf(`<${name}`, searchAt);
    if (searchAt === -1) return null;
    const afterName = searchAt + name.length + 1;
    const tagEndAt = xml.indexOf('>', afterName);
    if (tagEndAt === -1) return null;
    // The name must end here: an element with a longer name that begins the same is another one.
    if (/[\s/>]/.test(xml[afterName]!)) return { end: tagEndAt + 1, isSelfClosing: xml[tagEndAt - 1] === '/' };
    searchAt = afterName;
  }
}

/** Decodes character references such as `&amp;` and `&#38;`; everything else stays unchanged. */
function decodeCharacterReferences(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([a-z]{2,4}));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return XML_ENTITIES[name as string] ?? whole;
    const codePoint = hex === undefined ? Number(decimal) : Number.parseInt(hex as string, 16);
    return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : whole;
  });
}
