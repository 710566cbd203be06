import { describe, expect, test } from 'vitest'
import type { ArgumentSchema } from '../../../../src/service/row.ts'
import { checkValue } from '../../../../src/wordpress/arguments/check-value.ts'

type Row = [schema: ArgumentSchema, value: unknown, message: string | undefined, code?: string]

const integer: ArgumentSchema = { type: 'integer' }

// Texts and codes are those of WordPress's REST interface.
const rows: Row[] = [
  [{ type: 'integer', minimum: 1 }, '0', 'x must be greater than or equal to 1', 'rest_out_of_bounds'],
  [{ type: 'integer', minimum: 1, exclusiveMinimum: true }, 1, 'x must be greater than 1'],
  [{ type: 'integer', maximum: 9 }, 10, 'x must be less than or equal to 9'],
  [{ type: 'integer', maximum: 9, exclusiveMaximum: true }, 9, 'x must be less than 9'],
  [
    { type: 'number', minimum: 0, maximum: 100 },
    '100.5',
    'x must be between 0 (inclusive) and 100 (inclusive)',
  ],
  [
    { type: 'integer', minimum: 0, exclusiveMinimum: true, maximum: 360, exclusiveMaximum: true },
    0,
    'x must be between 0 (exclusive) and 360 (exclusive)',
  ],
  [
    { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 5 },
    0,
    'x must be between 0 (exclusive) and 5 (inclusive)',
  ],
  [
    { type: 'number', minimum: 0, maximum: 5, exclusiveMaximum: true },
    5,
    'x must be between 0 (inclusive) and 5 (exclusive)',
  ],
  [{ type: 'integer', minimum: 3 }, '2.5', 'x must be greater than or equal to 3'],
  [{ type: 'integer', minimum: 1 }, '2.5', 'x is not of type integer.', 'rest_invalid_type'],
  [{ type: 'number' }, 'abc', 'x is not of type number.'],
  [{ type: 'number' }, ' 1.5e1 ', undefined],
  [{ type: 'boolean' }, 'on', 'x is not of type boolean.'],
  [{ type: 'null' }, '', 'x is not of type null.'],
  [{ type: 'null' }, null, undefined],
  [{ type: 'string' }, 5, 'x is not of type string.'],
  [{ type: 'string', minLength: 1 }, '', 'x must be at least 1 character long.', 'rest_too_short'],
  [{ type: 'string', minLength: 2 }, '\u{1f600}', 'x must be at least 2 characters long.'],
  [
    { type: 'string', maxLength: 1200 },
    'y'.repeat(1201),
    'x must be at most 1,200 characters long.',
    'rest_too_long',
  ],
  [{ type: 'string', pattern: '[a-z]+' }, '12', 'x does not match pattern [a-z]+.', 'rest_invalid_pattern'],
  [{ type: 'string', pattern: '[a-zA-Z0-9_\\%-]+' }, 'a b', undefined],
  [{ type: 'string', enum: ['asc', 'desc'] }, 'ASC', 'x is not one of asc and desc.', 'rest_not_in_enum'],
  [{ type: 'string', enum: ['only'] }, 'x', 'x is not only.'],
  [{ type: 'integer', enum: [1, 2, 3] }, '2.0', undefined],
  [{ type: 'integer', enum: [1, 2, 3] }, '4', 'x is not one of 1, 2, and 3.'],
  [{ type: 'string', format: 'date-time' }, '2026-02-01', 'Invalid date.', 'rest_invalid_date'],
  [{ type: ['string', 'null'], format: 'date-time' }, null, undefined],
  [{ type: ['string', 'null'], format: 'date-time' }, 5, 'x is not of type string,null.'],
  [{ type: 'string', format: 'uri' }, 'not a uri', undefined],
  [{ type: 'string', format: 'ip' }, '1.2.3', 'x is not a valid IP address.', 'rest_invalid_ip'],
  [{ type: 'string', format: 'uuid' }, 'x', 'x is not a valid UUID.', 'rest_invalid_uuid'],
  [{ type: 'string', format: 'email' }, 'x', 'Invalid email address.', 'rest_invalid_email'],
  [{ type: 'string', format: 'hex-color' }, 'x', 'Invalid hex color.', 'rest_invalid_hex_color'],
  [{ type: 'array', items: integer }, '1, 2,,3', undefined],
  [{ type: 'array', items: integer }, '', undefined],
  [{ type: 'array', items: integer }, 5, undefined],
  [{ type: 'array', items: integer }, null, 'x is not of type array.'],
  [{ type: 'array', items: integer }, { a: 1 }, 'x is not of type array.'],
  [{ type: 'array', items: integer }, { 0: 1, 7: 2 }, undefined],
  [{ type: 'array', items: integer }, [1, 'b'], 'x[1] is not of type integer.'],
  [
    { type: 'array', items: integer, minItems: 1 },
    [],
    'x must contain at least 1 item.',
    'rest_too_few_items',
  ],
  [
    { type: 'array', items: integer, maxItems: 2 },
    '1,2,3',
    'x must contain at most 2 items.',
    'rest_too_many_items',
  ],
  [{ type: 'array', uniqueItems: true }, 'a,a', 'x has duplicate items.', 'rest_duplicate_items'],
  [{ type: 'array', uniqueItems: true }, [1, '1'], undefined],
  [
    { type: 'array', uniqueItems: true },
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
    'x has duplicate items.',
  ],
  [{ type: 'object' }, '', undefined],
  [{ type: 'object' }, [1], undefined],
  [{ type: 'object' }, 'a', 'x is not of type object.'],
  [{ type: 'object', properties: { a: integer } }, { a: 'q', b: 1 }, 'x[a] is not of type integer.'],
  [
    { type: 'object', properties: { a: integer }, additionalProperties: false },
    { b: 1 },
    'b is not a valid property of Object.',
    'rest_additional_properties_forbidden',
  ],
  [{ type: 'object', additionalProperties: integer }, { b: 'q' }, 'x[b] is not of type integer.'],
  [
    { type: 'object', minProperties: 2 },
    { a: 1 },
    'x must contain at least 2 properties.',
    'rest_too_few_properties',
  ],
  [
    { type: 'object', maxProperties: 1, properties: { a: integer } },
    { a: 1, b: 2 },
    'x must contain at most 1 property.',
    'rest_too_many_properties',
  ],
  [
    { type: 'object', maxProperties: 1, additionalProperties: integer },
    { a: 1, b: 'q' },
    'x[b] is not of type integer.',
  ],
  [{ type: 'object', minProperties: 1, maxProperties: 2 }, { a: 1, b: 2 }, undefined],
  [
    { type: 'object', properties: { path: { type: 'string', required: true } } },
    {},
    'path is a required property of x.',
    'rest_property_required',
  ],
  [{ type: 'object', required: ['type', 'args'] }, { type: 1 }, 'args is a required property of x.'],
  [{ type: 'object', properties: {} }, JSON.parse('{"__proto__": 1}'), undefined],
  [
    { type: 'object', properties: {}, additionalProperties: false },
    JSON.parse('{"__proto__": 1}'),
    '__proto__ is not a valid property of Object.',
  ],
  [{ type: ['integer', 'string'] }, 'abc', undefined],
  [{ type: ['object', 'integer'] }, 'abc', 'x is not of type object,integer.'],
  [{ anyOf: [integer, { type: 'boolean' }] }, 'true', undefined],
  [
    { anyOf: [integer, { type: 'boolean' }] },
    'q',
    'x does not match any of the expected formats.',
    'rest_no_matching_schema',
  ],
  [{ anyOf: [integer] }, 'q', 'x does not match the expected format. Reason: x is not of type integer.'],
  [
    {
      oneOf: [
        { ...integer, title: 'Whole' },
        { type: 'number', title: 'Number' },
      ],
    },
    '1',
    'x matches Whole and Number, but should match only one.',
    'rest_one_of_multiple_matches',
  ],
  [{ oneOf: [integer, { type: 'number' }] }, '1', 'x matches more than one of the expected formats.'],
  [
    {
      oneOf: [
        { ...integer, title: 'Whole' },
        { type: 'boolean', title: 'Truth' },
      ],
    },
    'q',
    'x is not a valid Whole and Truth.',
  ],
]

describe('values against schemas', () => {
  test.each<Row>(rows)('%j: %j', (schema, value, message, code) => {
    const issue = checkValue(value, schema, 'x')
    expect(issue?.message).toBe(message)
    if (code !== undefined) expect(issue?.code).toBe(code)
  })

  test('details carry the path of a wrong type', () => {
    expect(checkValue([1, 'b'], { type: 'array', items: integer }, 'include')?.data).toEqual({
      param: 'include[1]',
    })
  })
})
