/** A file that a message carries, as its readers see it. */
export interface Attachment {
  /** Of the file: 22 characters of base64url. */
  readonly id: string;
  readonly name: string;
  readonly type: string;
  /** Bytes. */
  readonly size: number;
  /** Of a picture that says it: pixels, as it is shown. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}
