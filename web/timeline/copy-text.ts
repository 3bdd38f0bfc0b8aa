/** Whether the browser took the text. */
export async function copyText(text: string): Promise<boolean> {
  // There is no clipboard on plain http beyond loopback, and a browser may refuse it.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  const isWritten = await clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  return isWritten === true || copyBySelection(text);
}

/** Browsers copy a selection on plain http, too. */
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
