/** Resolves after `ms` milliseconds, or as soon as the signal is aborted. */
export function waitOrUntilAborted(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const endWait = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', endWait);
      resolve();
    };
    const timer = setTimeout(endWait, ms);
    if (signal.aborted) endWait();
    else signal.addEventListener('abort', endWait);
  });
}
