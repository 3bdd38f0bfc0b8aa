import type { Mutant } from './mutant.ts';

const TESTS = 'test/http/callers/signed-posts.test.ts';

/** Signatures of posts. */
export const SIGNATURE_MUTANTS: readonly Mutant[] = [
  {
    name: 'signature-not-compared',
    promise: 'A post whose signature does not fit its body is refused.',
    file: 'src/http/callers/post-signature.ts',
    find: 'return HEX_DIGEST_PATTERN.test(hex) && timingSafeEqual(digest,',
    replace: 'return HEX_DIGEST_PATTERN.test(hex) || timingSafeEqual(digest,',
    tests: [TESTS, '-t', 'another secret'],
  },
  {
    name: 'signature-left-out',
    promise: 'A post of a format that is signed is refused without a signature.',
    file: 'src/http/callers/caller-input.ts',
    find: 'if (context.isUnsigned) requireSignatureOf(format);',
    replace: '',
    tests: [TESTS, '-t', 'without one'],
  },
  {
    name: 'signature-over-decompressed',
    promise: 'A signature is verified over the bytes as they were sent.',
    file: 'src/http/body.ts',
    find: `  const raw = await readRawBody(req, size, { memory, check });
  check?.verify();
  if (decompress === undefined) return raw;
  const maxExpanded = maxExpandedBytes(raw.length);
  try {
    return await decompress(raw, {
      maxOutputLength: Math.min(maxBytes, maxExpanded),
      chunkSize: DECOMPRESSION_CHUNK_BYTES,
    });`,
    replace: `  const raw = await readRawBody(req, size, { memory });
  if (decompress === undefined) {
    check?.update(raw);
    check?.verify();
    return raw;
  }
  const maxExpanded = maxExpandedBytes(raw.length);
  try {
    const expanded = await decompress(raw, {
      maxOutputLength: Math.min(maxBytes, maxExpanded),
      chunkSize: DECOMPRESSION_CHUNK_BYTES,
    });
    check?.update(expanded);
    check?.verify();
    return expanded;`,
    tests: [TESTS, '-t', 'bytes as they were sent'],
  },
  {
    name: 'incoming-secret-by-cache',
    promise: 'A node that has not heard of a new secret takes nothing without a signature.',
    file: 'src/storage/messages/write-posts.ts',
    find: 't.conversation_id = u.conversation_id and coalesce(t.admission, t.token_hash) = u.token_hash',
    replace: "t.conversation_id = u.conversation_id and t.token_hash = split_part(u.token_hash, '.', 1)",
    tests: ['test/delivery/two-nodes.test.ts', '-t', 'not signed'],
  },
];
