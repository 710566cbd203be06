import { describe, expect, test } from 'vitest'
import { ask } from './support.ts'

const edit = (modifiers: unknown) =>
  ask({
    row: 'media.edit',
    method: 'POST',
    path: { id: '5' },
    content: JSON.stringify({ src: 'http://x.example/y.png', modifiers }),
  })

const reason = (modifiers: unknown): string => {
  const response = edit(modifiers)
  if (response.kind === 'valid') return 'valid'
  return (response.body as { data: { params: Record<string, string> } }).data.params['modifiers'] ?? ''
}

describe('the three forms of an image edit', () => {
  test.each([
    [[{ type: 'flip', args: { flip: { horizontal: true, vertical: 0 } } }]],
    [[{ type: 'rotate', args: { angle: '90' } }]],
    [
      [
        { type: 'crop', args: { left: 0, top: 0, width: 50, height: 50.5 } },
        { type: 'rotate', args: { angle: 1 } },
      ],
    ],
  ])('%j', (modifiers) => {
    expect(reason(modifiers)).toBe('valid')
  })

  test.each([
    [[], 'modifiers must contain at least 1 item.'],
    ['x', 'modifiers[0] is not a valid Flip, Rotation, and Crop.'],
    [[{ type: 'flip' }], 'args is a required property of modifiers[0].'],
    [
      [{ type: 'crop', args: { left: 1, top: 1, width: 1 } }],
      'modifiers[0] is not a valid Flip. Reason: modifiers[0][type] is not flip.',
    ],
    [
      [{ type: 'flip', args: { flip: { horizontal: true } } }],
      'modifiers[0] is not a valid Flip. Reason: vertical is a required property of modifiers[0][args][flip].',
    ],
  ])('%j: %s', (modifiers, expected) => {
    expect(reason(modifiers)).toBe(expected)
  })
})
