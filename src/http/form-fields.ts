import { Busboy, type BusboyHeaders } from '@fastify/busboy';
import { KlatchError } from '../errors.ts';

/**
 * The most parts of a multipart form. A post has a text, a name, an icon and at most 100 files; other parts are
 * ignored.
 */
export const MAX_FORM_PARTS = 200;
/**
 * The most bytes of headers of one part. The parser (Dicer) takes 100 ms for a form that consists of 1 MiB of headers.
 */
const MAX_PART_HEADER_BYTES = 8 * 1_024;
const MAX_PART_HEADERS = 16;
/** A form is parsed in pieces of this size; a refused form is read only to the end of the current piece. */
const PARSE_CHUNK_BYTES = 16 * 1_024;

const invalid = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/** Whether the body begins like a JSON object. A multipart form begins with a boundary instead. */
export const beginsLikeObject = (body: Buffer): boolean => body.toString('latin1', 0, 64).trimStart().startsWith('{');

/** The error for a form with more than MAX_FORM_PARTS parts. */
export const tooManyPartsError = (): KlatchError => invalid(`The form has more than ${MAX_FORM_PARTS} parts`);

/**
 * Makes the parser of a multipart form, which takes the boundary from Content-Type and bounds the parts. A part with a
 * file name is a file, whatever its type, as for browsers. Throws if Content-Type names no boundary.
 */
export function createMultipartParser(headers: BusboyHeaders, maxFieldBytes: number): InstanceType<typeof Busboy> {
  return new Busboy({
    headers,
    isPartAFile: (_field, _type, fileName) => fileName !== undefined,
    limits: {
      fieldSize: maxFieldBytes,
      parts: MAX_FORM_PARTS,
      headerSize: MAX_PART_HEADER_BYTES,
      headerPairs: MAX_PART_HEADERS,
    },
  });
}

/**
 * The fields of a complete form; of fields with the same name, the first one. Throws `invalid_input`, also if the form
 * has a file.
 */
export async function readMultipartFields(body: Buffer, contentType: string): Promise<ReadonlyMap<string, string>> {
  const fields = new Map<string, string>();
  const problems: KlatchError[] = [];
  const parser = openParser(body, contentType);
  const parsed = new Promise<void>((resolve) => {
    const fail = (error: KlatchError): void => {
      problems.push(error);
      resolve();
    };
    parser.on('field', (name, value) => {
      if (!fields.has(name)) fields.set(name, value);
    });
    parser.on('file', (_field, stream) => {
      stream.on('error', () => {}).resume();
      fail(invalid('A form with a file must be sent as it is, without a Content-Encoding'));
    });
    parser.on('partsLimit', () => fail(tooManyPartsError()));
    parser.on('error', (cause: unknown) => fail(invalidFormError(cause)));
    parser.on('finish', () => resolve());
  });
  for (let at = 0; at < body.length && problems.length === 0; at += PARSE_CHUNK_BYTES) {
    parser.write(body.subarray(at, at + PARSE_CHUNK_BYTES));
  }
  if (problems.length === 0) parser.end();
  await parsed;
  const [problem] = problems;
  if (problem !== undefined) throw problem;
  return fields;
}

function openParser(body: Buffer, contentType: string): InstanceType<typeof Busboy> {
  try {
    return createMultipartParser({ 'content-type': contentType }, body.length);
  } catch (cause) {
    throw invalidFormError(cause);
  }
}

function invalidFormError(cause: unknown): KlatchError {
  return new KlatchError('invalid_input', { sentence: 'The body is not a valid multipart form', cause });
}
