import { describe, expect, test } from 'vitest'
import recordings from './fixtures/recordings.json' with { type: 'json' }
import { type Asked, ask, refusalOf } from './support.ts'

type Recording = Asked & { readonly name: string; readonly answer?: unknown; readonly canonical?: string }

const { refused, accepted, ambiguous } = recordings as unknown as Record<
  'refused' | 'accepted' | 'ambiguous',
  Recording[]
>

describe('recordings of WordPress 6.9', () => {
  test.each(refused)('$name is refused with the same body', (recording) => {
    expect(refusalOf(recording)).toEqual(recording.answer)
    expect(JSON.stringify(refusalOf(recording))).toBe(JSON.stringify(recording.answer))
  })

  test.each(accepted)('$name is forwarded in its canonical form', (recording) => {
    expect(ask(recording)).toMatchObject({ kind: 'valid', query: recording.canonical })
  })

  test.each(ambiguous)('$name acts on another item there and is refused here', (recording) => {
    expect(refusalOf(recording)).toEqual({
      code: 'trellis_ambiguous_request',
      message: 'The request contradicts its path or method.',
      data: { status: 400, params: { id: 'id must equal the value in the path' } },
    })
  })
})
