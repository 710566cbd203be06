import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parameterEnd, parameterStart } from '../../../../src/wordpress/arguments/php-query.ts'

const read = (text: string): string[] => {
  const found: string[] = []
  for (let start = parameterStart(text, 0); start < text.length; ) {
    const end = parameterEnd(text, start)
    found.push(text.slice(start, end))
    start = parameterStart(text, end)
  }
  return found
}

test('ampersands separate the parameters of a query', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', '=', '&', '%26') }), (text) => {
      expect(read(text)).toEqual(text.split('&').filter((part) => part !== ''))
    }),
  )
})
