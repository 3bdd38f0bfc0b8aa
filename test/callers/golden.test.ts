import { describe, expect, test } from '@jest/globals';
import { isIgnored } from '../../src/callers/core/message-form.ts';
import { renderText } from '../../src/callers/core/render-text.ts';
import { detectFormat, formats } from '../../src/callers/formats.ts';
import { fixtureNames, readExpectedText, readFixture, requestOf } from './fixtures.ts';

describe.each(formats)('$name', (format) => {
  test.each(fixtureNames(format))('reads %s', (name) => {
    const fixture = readFixture(format, name);
    const request = requestOf(fixture);
    if (fixture.needsSuffix !== true) expect(detectFormat(request)?.name).toBe(format.name);
    const result = format.read(request);
    if (isIgnored(result)) {
      expect(result).toEqual({ ignored: fixture.ignored });
      return;
    }
    expect(fixture.ignored).toBeUndefined();
    expect(`${renderText(result)}\n`).toBe(readExpectedText(format, name));
    if (fixture.label !== undefined) expect(result.senderLabel).toBe(fixture.label);
    if (fixture.alert !== undefined) expect(result.alert).toEqual(fixture.alert);
    if (fixture.files !== undefined) expect(result.files).toEqual(fixture.files);
  });
});
