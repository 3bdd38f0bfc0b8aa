import type { Mutant } from './mutant.ts';

const POST_TESTS = 'test/http/callers/refused-posts.test.ts';
const RECORDER = 'src/operations/core/refused-post-recorder.ts';
const RECORDER_TESTS = 'test/operations/core/refused-post-recorder.test.ts';

/** Faults in the record that a group keeps of refused posts. */
export const REFUSED_POST_MUTANTS: readonly Mutant[] = [
  {
    name: 'refused-posts-by-code',
    promise: 'Every post that is refused with a 4xx is recorded, whatever its code.',
    file: 'src/http/callers/refused-post.ts',
    find: 'status >= 400 && status < 500',
    replace: "(code === 'invalid_input' || code === 'too_large')",
    tests: [POST_TESTS, '-t', 'is stored'],
  },
  {
    name: 'refused-post-quotes-body',
    promise: 'Nothing of a body that is refused is stored.',
    file: 'src/http/callers/caller-input.ts',
    find: 'must be a string, got ${jsonTypeName(text)}',
    replace: 'must be a string, got ${JSON.stringify(text)}',
    tests: [POST_TESTS, '-t', 'another type'],
  },
  {
    name: 'refused-posts-unbounded',
    promise: 'A group keeps 20 rows of refused posts.',
    file: 'src/storage/groups/refused-posts.ts',
    find: 'where k.rank > ${MAX_REFUSED_POSTS_PER_GROUP}',
    replace: 'where k.rank > 1000',
    tests: [RECORDER_TESTS, '-t', 'newest 20'],
  },
  {
    name: 'refused-posts-lost-with-database',
    promise: 'Refused posts wait while the database is away.',
    file: RECORDER,
    find: 'this.#putBack(groups.slice(start));',
    replace: '',
    tests: [RECORDER_TESTS, '-t', 'they wait'],
  },
  {
    name: 'refused-posts-written-one-by-one',
    promise: 'Refused posts of a burst are written once a second.',
    file: RECORDER,
    find: 'const WRITE_INTERVAL_MS = 1_000;',
    replace: 'const WRITE_INTERVAL_MS = 0;',
    tests: [POST_TESTS, '-t', 'of a burst'],
  },
];

const SIGNATURE_TESTS = 'test/http/callers/signed-posts.test.ts';

/** Faults in the signatures of posts. */
export const SIGNATURE_MUTANTS: readonly Mutant[] = [
  {
    name: 'signature-not-compared',
    promise: 'A post whose signature does not fit its body is refused.',
    file: 'src/http/callers/post-signature.ts',
    find: 'return HEX_DIGEST_PATTERN.test(hex) && timingSafeEqual(digest,',
    replace: 'return HEX_DIGEST_PATTERN.test(hex) || timingSafeEqual(digest,',
    tests: [SIGNATURE_TESTS, '-t', 'another secret'],
  },
  {
    name: 'signature-left-out',
    promise: 'A post of a format that is signed is refused without a signature.',
    file: 'src/http/callers/caller-input.ts',
    find: '      requireSignatureOf(format);\n',
    replace: '',
    tests: [SIGNATURE_TESTS, '-t', 'without one'],
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
    tests: [SIGNATURE_TESTS, '-t', 'bytes as they were sent'],
  },
  {
    name: 'incoming-secret-by-cache',
    promise: 'A node that has not heard of a new secret takes nothing without a signature.',
    file: 'src/storage/messages/write-posts.ts',
    find: 't.conversation_id = u.conversation_id and coalesce(t.admission, t.token_hash) = u.admission',
    replace: "t.conversation_id = u.conversation_id and t.token_hash = split_part(u.admission, '.', 1)",
    tests: ['test/delivery/two-nodes.test.ts', '-t', 'not signed'],
  },
];
