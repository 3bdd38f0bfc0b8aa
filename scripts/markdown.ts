/**
 * Escapes text for a page: outside code, Markdown reads globs as emphasis, placeholders as tags, and bars as columns.
 */
export function plain(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : escape(part)))
    .join('');
}

function escape(text: string): string {
  return text.replaceAll('*', '\\*').replaceAll('<', '&lt;').replaceAll('|', '\\|');
}
