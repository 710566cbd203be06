import { describe, expect, test } from 'vitest'
import { adviceFor } from '../../../src/admin/advice.ts'
import { describedText, descriptionsOf } from '../../../src/admin/descriptions.ts'

const described = (cause: string, count: number, service = 'blog') => ({ service, cause, count })
const limits = { maxBytes: 1 }

test('no service is named where nothing is described', () => {
  expect(descriptionsOf([], [{ service: 'blog', count: 7 }])).toEqual([])
  expect(adviceFor([], limits, descriptionsOf([], [{ service: 'blog', count: 7 }]))).toEqual([])
})

describe('of the stored responses of a service', () => {
  const rows = [
    described('', 60),
    described('plugin shop: all options', 10),
    described('the table blogs', 30),
    described('', 5, 'other'),
  ]
  const [blog, other] = descriptionsOf(rows, [
    { service: 'blog', count: 104 },
    { service: 'other', count: 5 },
  ])

  test('those without any list are not complete either, and the most frequent cause comes first', () => {
    expect(blog).toEqual({
      service: 'blog',
      stored: 104,
      complete: 60,
      causes: [
        { cause: 'the table blogs', count: 30 },
        { cause: 'plugin shop: all options', count: 10 },
        { cause: 'responses that the companion does not describe', count: 4 },
      ],
      untested: [],
    })
    expect(other).toEqual({ service: 'other', stored: 5, complete: 5, causes: [], untested: [] })
  })

  test('the text has the share, and five causes at most', () => {
    expect(other && describedText(other)).toBe('the companion describes all of 5 stored responses completely')
    const causes = Array.from({ length: 7 }, (_, at) => described(`plugin p${at}: all options`, 10 - at))
    const [many] = descriptionsOf([described('', 51), ...causes], [])
    expect(many && describedText(many)).toBe(
      'the companion describes 51 of 100 stored responses completely (51.0 %). Each change of anything public drops the others: plugin p0: all options (10), plugin p1: all options (9), plugin p2: all options (8), plugin p3: all options (7), plugin p4: all options (6), and 2 more',
    )
  })

  test('plugins in versions that were not tested are named, and are advice where all are complete, too', () => {
    const untested = [
      { service: 'blog', plugin: 'woocommerce 10.6.1' },
      { service: 'other', plugin: 'pods 3.4' },
    ]
    const [site] = descriptionsOf([described('', 7)], [], untested)
    expect(site?.untested).toEqual(['woocommerce 10.6.1'])
    expect(site && describedText(site)).toMatch(
      /^the companion describes all of 7 stored responses completely\. Since the gateway started, .* not tested with \(woocommerce 10\.6\.1\): /,
    )
    expect(adviceFor([], limits, site ? [site] : [])).toMatchObject([{ service: 'blog', count: 0 }])
  })

  test('they are advice among the others where some are not complete', () => {
    const lost = { service: 'blog', route: '/a', reason: 'cookie', reads: 100 }
    const advice = (count: number) =>
      adviceFor([{ ...lost, count }], limits, descriptionsOf(rows, [])).map(({ reason }) => reason)
    expect(advice(39)).toEqual(['incomplete', 'cookie'])
    expect(advice(41)).toEqual(['cookie', 'incomplete'])
    expect(adviceFor([], limits, descriptionsOf(rows, []))).toMatchObject([
      { service: 'blog', count: 40, reads: 100, share: 0.4, unit: 'stored responses' },
    ])
  })
})
