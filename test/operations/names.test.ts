import { describe, expect, test } from '@jest/globals';
import { nameOrTitleSchema } from '../../src/operations/core/schemas.ts';

describe('a name of a person or group', () => {
  test.each(['Alice', 'Привет', '☃', 'ㅎㅏㄴ', '⠓', 'a'.repeat(200)])('may be %s', (name) => {
    expect(nameOrTitleSchema.parse(` ${name} `)).toBe(name);
  });

  test.each([
    ['nothing but white space', '  '],
    ['nothing that can be seen', '\u200b\u200d'],
    ['nothing but a filler of Hangul', '\u3164\u115f\u1160\uffa0'],
    ['an empty pattern of Braille', '\u2800'],
    ['a sign that turns the direction of what follows', 'a\u202eb'],
    ['a line separator', 'a\u2028b'],
    ['a control character', 'a\u0007b'],
    ['more than 200 characters', 'a'.repeat(201)],
  ])('is not %s', (_, name) => {
    expect(nameOrTitleSchema.safeParse(name).success).toBe(false);
  });
});
