import type { Origin } from './value.ts';

/**
 * `cut-by-comment`: a comment begins directly behind unquoted text. `quotes-removed`: quoted and other text adjoin.
 * `quoted-substitution`: `${…}` in quotes stays as it is. `missing-include`: there is no such file.
 */
export type HoconWarningKind = 'cut-by-comment' | 'quotes-removed' | 'quoted-substitution' | 'missing-include';

/** Something in a text that is valid HOCON and hardly meant. */
export interface HoconWarning {
  readonly kind: HoconWarningKind;
  readonly origin: Origin;
  /** The path of the field that it stands in; without the positions of lists. */
  readonly path: readonly string[];
}
