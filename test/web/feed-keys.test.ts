import { describe, expect, test } from '@jest/globals';
import { feedMoveOf, messageCommandOf } from '../../web/timeline/feed-keys.ts';

const press = (key: string, modifiers: object = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  ...modifiers,
});

describe('a key in the list of messages', () => {
  test('moves the focus, or acts on the message that has it', () => {
    const moves = ['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Home', 'End'].map((key) => feedMoveOf(press(key)));
    expect(moves).toEqual(['previous', 'next', 'page-up', 'page-down', 'first', 'last']);
    const commands = ['e', 'E', 'c', 'Delete', 'Enter'].map((key) => messageCommandOf(press(key)));
    expect(commands).toEqual(['edit', 'edit', 'copy', 'remove', 'menu']);
    for (const key of ['x', 'enter', 'delete', 'Escape', ' ', 'constructor'])
      expect([feedMoveOf(press(key)), messageCommandOf(press(key))]).toEqual([null, null]);
  });

  test.each(['ctrlKey', 'metaKey', 'altKey', 'shiftKey'])(
    'does what the browser does with it when %s is down',
    (name) => {
      for (const key of ['ArrowUp', 'End', 'c', 'e', 'f', 'Delete', 'Enter']) {
        const pressed = press(key, { [name]: true });
        expect([feedMoveOf(pressed), messageCommandOf(pressed)]).toEqual([null, null]);
      }
    },
  );
});
