/** Copies a text to the clipboard. Resolves to false if the browser refused it. */
export async function copyText(text: string): Promise<boolean> {
  // `navigator.clipboard` is missing on plain http beyond loopback, and a browser may refuse the call.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  const isWritten = await clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  return isWritten === true || copyBySelection(text);
}

/** Copies by selecting the text in a field, which also works on plain http. */
function copyBySelection(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement('textarea');
  field.className = 'unseen';
  field.readOnly = true;
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return isCopied;
}
