import { expect, test } from 'vitest'
import { formatHttpDate, parseHttpDate } from '../../../../src/http/conditional/dates.ts'

const now = Date.UTC(2026, 5, 1)
const example = Date.UTC(1994, 10, 6, 8, 49, 37)

test.each([
  ['IMF-fixdate', 'Sun, 06 Nov 1994 08:49:37 GMT', example],
  ['RFC 850', 'Sunday, 06-Nov-94 08:49:37 GMT', example],
  ['asctime', 'Sun Nov  6 08:49:37 1994', example],
  ['another case', 'sun, 06 nov 1994 08:49:37 gmt', example],
  ['a leap second', 'Sun, 31 Dec 2006 23:59:60 GMT', Date.UTC(2007, 0, 1)],
  ['two digits within fifty years', 'Friday, 01-Jan-76 00:00:00 GMT', Date.UTC(2076, 0, 1)],
  ['two digits beyond fifty years', 'Friday, 01-Jan-77 00:00:00 GMT', Date.UTC(1977, 0, 1)],
  ['29 February of a leap year', 'Sat, 29 Feb 2020 00:00:00 GMT', Date.UTC(2020, 1, 29)],
])('%s is a date', (_, text, expected) => {
  expect(parseHttpDate(text, now)).toBe(expected)
})

test.each([
  ['zero', '0'],
  ['empty', ''],
  ['another zone', 'Sun, 06 Nov 1994 08:49:37 EST'],
  ['an offset', 'Sun, 06 Nov 1994 08:49:37 +0000'],
  ['UTC', 'Sun, 06 Nov 1994 08:49:37 UTC'],
  ['no zone', 'Sun, 06 Nov 1994 08:49:37'],
  ['no comma', 'Sun 06 Nov 1994 08:49:37 GMT'],
  ['dashes', 'Sun, 06-Nov-1994 08:49:37 GMT'],
  ['one digit of the day', 'Sun, 6 Nov 1994 08:49:37 GMT'],
  ['one digit of the hour', 'Sun, 06 Nov 1994 8:49:37 GMT'],
  ['two digits of the year', 'Sun, 06 Nov 94 08:49:37 GMT'],
  ['dots in the time', 'Sun, 06 Nov 1994 08.49.37 GMT'],
  ['several spaces', 'Sun,  06 Nov 1994 08:49:37 GMT'],
  ['hour 24', 'Sun, 06 Nov 1994 24:00:00 GMT'],
  ['31 February', 'Sun, 31 Feb 1994 08:49:37 GMT'],
  ['year 0094', 'Sun, 06 Nov 0094 08:49:37 GMT'],
  ['two dates', 'Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT'],
  ['ISO 8601', '1994-11-06T08:49:37Z'],
])('%s is no date', (_, text) => {
  expect(parseHttpDate(text, now)).toBeUndefined()
})

test('a date is written as it is read', () => {
  expect(formatHttpDate(example)).toBe('Sun, 06 Nov 1994 08:49:37 GMT')
})
