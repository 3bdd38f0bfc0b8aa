import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** A part of the page that is fetched with its first use. */
interface Loaded<Part> {
  /** Null: the part is being fetched, or could not be fetched. */
  readonly part: Part | null;
  readonly hasFailed: boolean;
}

export function useLoaded<Part>(load: () => Promise<Part>): Loaded<Part> {
  const loaded = useSignal<Loaded<Part>>({ part: null, hasFailed: false });
  useEffect(() => {
    void load().then(
      (part) => {
        loaded.value = { part, hasFailed: false };
      },
      () => {
        loaded.value = { part: null, hasFailed: true };
      },
    );
  }, [load]);
  return loaded.value;
}
