import { describe, expect, test } from 'vitest'
import { maxJsonNames, maxJsonValues, readJson } from '../../../../src/http/bodies/read-json.ts'
import { atOnce } from '../../../../src/http/bodies/turns.ts'
import { ask, refusalOf } from '../../wordpress/arguments/support.ts'

const read = (content: string | Buffer, depth = 512) => {
  const reading = atOnce(readJson(Buffer.from(content), depth))
  return reading.kind === 'read' ? reading.value : reading.fault
}

test('content with more values than fit into a megabyte is refused before it is parsed', () => {
  const repeated = (item: string, count: number): string => `[${Array(count).fill(item).join()}]`
  const list = (count: number): string => repeated('1', count)
  // The list itself counts as five.
  expect(read(list(maxJsonValues - 4))).toHaveLength(maxJsonValues - 4)
  expect(read(list(maxJsonValues - 3))).toBe('too-many-values')
  const objects = Math.floor((maxJsonValues - 4) / 6)
  expect(read(repeated('{}', objects))).toHaveLength(objects)
  expect(read(repeated('{}', objects + 1))).toBe('too-many-values')
  expect(read(repeated('[[]]', objects))).toBe('too-many-values')
  expect(read(`["${','.repeat(2 * maxJsonValues)}"]`)).toHaveLength(1)
  const asked = ask({ method: 'POST', content: list(maxJsonValues + 1) })
  expect(asked).toMatchObject({ kind: 'invalid', status: 400, code: 'trellis_too_many_parameters' })
})

test('content with more different names than that is refused before it is parsed, however it is written', () => {
  const object = (count: number, between = ''): string =>
    `{${Array.from({ length: count }, (_, at) => `"name ${at}"${between}:1`).join()}}`
  // A few names have the hash of another.
  expect(read(object(maxJsonNames))).toHaveProperty('name 7')
  expect(read(object(1.2 * maxJsonNames))).toBe('too-many-values')
  expect(read(object(1.2 * maxJsonNames, ' \n'))).toBe('too-many-values')
  expect(read(`[${Array.from({ length: 20_000 }, () => '{"a":1,"b":2}').join()}]`)).toHaveLength(20_000)
})

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)

describe('JSON content', () => {
  test.each([
    ['{bad', 'syntax'],
    ['', 'syntax'],
    ['\ufeff{}', 'syntax'],
    ['{"a":1,}', 'syntax'],
    ['[1', 'syntax'],
    ['NaN', 'syntax'],
    ['{"a":1}x', 'syntax'],
    ['{"a":01}', 'syntax'],
    ['{"a":"\\q"}', 'syntax'],
    [nested(513), 'depth'],
    ['['.repeat(600), 'depth'],
    ['{"a":"\u0001"}', 'control'],
    ['{"a":"\n"}', 'control'],
    ['\f{}', 'control'],
    ['{"a":"x', 'control'],
    ['{"a":"\\ud800"}', 'surrogate'],
    ['{"a":"\\udc00"}', 'surrogate'],
    ['{"\\ud800\\ud800":1}', 'surrogate'],
  ])('%j is refused: %s', (content, fault) => {
    expect(read(content)).toEqual(fault)
  })

  test('bytes that are not UTF-8 are refused', () => {
    expect(read(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]))).toBe('utf8')
  })

  test.each([
    '{"a":"\\ud83d\\ude00"}',
    '{"a":1e999}',
    ' {"a":1} ',
    '5',
    '"x"',
    'null',
    nested(512),
    '{"a":"["}',
    '{"a":"\\"]["}',
  ])('%s is read', (content) => {
    expect(read(content)).toEqual(JSON.parse(content))
  })

  test('nesting beyond the limit is refused before it is parsed', () => {
    expect(refusalOf({ method: 'POST', content: `{"meta":${nested(64)}}` })).toEqual({
      code: 'rest_invalid_json',
      message: 'Invalid JSON body passed.',
      data: { status: 400, json_error_code: 1, json_error_message: 'Maximum stack depth exceeded' },
    })
    expect(ask({ method: 'POST', content: `{"meta":${nested(63)}}` }).kind).toBe('valid')
  })

  test.each([
    ['an array', '["status"]'],
    ['a scalar', '5'],
    ['null', 'null'],
    ['nothing', ''],
  ])('%s has no parameters', (_, content) => {
    expect(ask({ method: 'POST', content })).toMatchObject({ kind: 'valid' })
    expect(refusalOf({ row: 'batch', method: 'POST', content })).toMatchObject({
      code: 'rest_missing_callback_param',
    })
  })
})
