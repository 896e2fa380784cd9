--- The buffers, and what is asked of a person. Questions go through `vim.ui`, so every picker and prompt plugin works.

local client = require('pillion.client')

local M = {}

local space = vim.api.nvim_create_namespace('pillion')
local groups = {
  ready = 'DiagnosticOk',
  error = 'DiagnosticError',
  needs_auth = 'DiagnosticWarn',
  connecting = 'DiagnosticInfo',
}

--- Shows a scratch buffer of this name in a split, or where it is shown already.
local function open(name, filetype)
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(name, '[]*?') .. '$')
  if buffer == -1 then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, name)
    vim.bo[buffer].bufhidden = 'wipe'
    vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buffer, desc = 'Close' })
  end
  local window = vim.fn.bufwinid(buffer)
  if window == -1 then
    vim.cmd.split()
    vim.api.nvim_win_set_buf(0, buffer)
  else
    vim.api.nvim_set_current_win(window)
  end
  vim.bo[buffer].filetype = filetype
  return buffer
end

local function fill(buffer, from, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, from, -1, false, lines)
  vim.bo[buffer].modifiable = false
end

local function lines_of(text)
  return vim.split(text, '\r?\n')
end

local function draw(buffer)
  local names = vim.tbl_keys(client.servers)
  table.sort(names)
  local rows = #names == 0 and { 'No servers yet. Add one to mcp.json, see :help pillion-servers' } or {}
  for _, name in ipairs(names) do
    local record = client.servers[name]
    local fault = record.error and record.error.message or record.command or ''
    local tools = record.tools and record.tools .. ' tools' or ''
    table.insert(rows, ('%-20s %-11s %-9s %s'):format(name, record.state, tools, lines_of(fault)[1]))
  end
  fill(buffer, 0, rows)
  vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1)
  for row, name in ipairs(names) do
    local group = groups[client.servers[name].state] or 'Comment'
    vim.api.nvim_buf_set_extmark(
      buffer,
      space,
      row - 1,
      math.max(#name, 20) + 1,
      { end_row = row, hl_group = group }
    )
  end
end

--- The list of servers, kept up to date while it is shown.
function M.list(pillion)
  client.request('mcp.status', client.at(nil, {}), function(status, problem)
    if not status then
      return client.notify(problem, vim.log.levels.ERROR)
    end
    client.servers = {}
    for _, record in ipairs(status.servers) do
      client.servers[record.name] = record
    end
    local buffer = open('pillion://servers', 'pillion')
    draw(buffer)
    local help = 's start  x stop  r restart  c call a tool  l log  q close'
    local keys = { s = 'start', x = 'stop', r = 'restart', c = 'call', ['<CR>'] = 'call', l = 'log' }
    for key, command in pairs(keys) do
      vim.keymap.set('n', key, function()
        local name = vim.api.nvim_get_current_line():match('^(%S+)')
        if client.servers[name] then
          pillion.command({ command, name })
        end
      end, { buffer = buffer, desc = command })
    end
    vim.keymap.set('n', 'g?', function()
      client.notify(help)
    end, { buffer = buffer, desc = 'Keys' })
    local group = vim.api.nvim_create_augroup('pillion.list', {})
    vim.api.nvim_create_autocmd('User', {
      group = group,
      pattern = 'PillionChanged',
      callback = function()
        if not vim.api.nvim_buf_is_valid(buffer) then
          return true -- the list is closed: no more drawing
        end
        draw(buffer)
      end,
    })
  end)
end

--- The log of one server, followed until its buffer is closed.
function M.log(server)
  local function text(entries)
    local rows = {}
    for _, line in ipairs(entries) do
      local at = os.date('%H:%M:%S', math.floor(line.at / 1000))
      vim.list_extend(rows, lines_of(('%s %-8s %-7s %s'):format(at, line.source, line.level, line.text)))
    end
    return rows
  end
  client.request('mcp.logs', client.at(server, { follow = true }), function(log, problem)
    if not log then
      return client.notify(problem, vim.log.levels.ERROR)
    end
    local buffer = open('pillion://log/' .. server, 'pillion-log')
    fill(buffer, 0, text(log.lines))
    local follow = vim.api.nvim_create_autocmd('User', {
      pattern = 'PillionLog',
      callback = function(event)
        if event.data.server == server then
          fill(buffer, vim.api.nvim_buf_line_count(buffer), text(event.data.lines))
        end
      end,
    })
    vim.api.nvim_create_autocmd('BufWipeout', {
      buffer = buffer,
      callback = function()
        vim.api.nvim_del_autocmd(follow)
        if client.running() then
          client.request('mcp.logs', client.at(server, { follow = false, limit = 1 }), function() end)
        end
      end,
    })
  end)
end

--- The result of a call: its texts as they are, everything else as JSON.
function M.result(result, problem)
  local rows = problem and lines_of(problem) or {}
  for _, block in ipairs(result and result.content or {}) do
    vim.list_extend(rows, lines_of(block.type == 'text' and block.text or vim.json.encode(block)))
  end
  if result and result.isError then
    table.insert(rows, 1, 'The tool failed:')
  end
  fill(open('pillion://result', 'markdown'), 0, rows)
end

--- Asks for one value; a dismissed prompt gives nil. What the sidecar finds wrong is asked for again, with its words.
local function value(field, server, check, done, complaint, before)
  local label = ('%s: %s%s%s'):format(
    server,
    complaint and complaint .. '. ' or '',
    field.label .. (field.description and ' (' .. field.description .. ')' or ''),
    field.required and ' *' or ''
  )
  local options = field.type == 'boolean'
      and { { value = true, label = 'yes' }, { value = false, label = 'no' } }
    or field.type == 'choice' and not field.typed and field.options
  if options then
    local format = function(option)
      return option.label .. (option.value == field.default and ' (default)' or '')
    end
    return vim.ui.select(options, { prompt = label, format_item = format }, function(option)
      done(option and option.value)
    end)
  end
  local default = before or field.default or ''
  default = type(default) == 'table' and table.concat(default, ', ') or tostring(default)
  for _, option in ipairs(field.options or {}) do
    label = label .. '\n  ' .. option.label
  end
  vim.ui.input({ prompt = label .. ': ', default = default }, function(typed)
    if typed == nil or typed == '' and not field.required then
      return done(typed)
    end
    check(field, typed, function(wrong)
      if wrong then
        return value(field, server, check, done, wrong, typed)
      end
      done(typed)
    end)
  end)
end

--- Asks for the fields one after the other; `done` gets the content, or nil if the person broke off.
local function form(fields, server, check, done)
  local content = vim.empty_dict()
  local function step(place)
    local field = fields[place]
    if not field then
      return done(content)
    end
    value(field, server, check, function(given)
      if given == nil then
        return done(nil)
      end
      content[field.name] = given ~= '' and given or nil
      step(place + 1)
    end)
  end
  step(1)
end

--- Validates one field with the sidecar, as one types.
local function checker(question)
  return function(field, typed, done)
    local answer =
      { question = question.id, action = 'accept', content = { [field.name] = typed }, check = true }
    client.request('mcp.answer', answer, function(answered)
      for _, problem in ipairs(answered and answered.problems or {}) do
        if problem.field == field.name then
          return done(problem.message)
        end
      end
      done(nil)
    end)
  end
end

--- Asks a question of a server. Accept, decline and a dismissed prompt (cancel) are told apart.
---@param done fun(action: 'accept'|'decline'|'cancel', content?: table, remember?: string)
function M.question(question, done)
  local prompt = question.title .. '\n' .. question.message
  local choices = { 'Answer', 'Decline' }
  if question.type == 'url' then
    prompt = ('%s\nOpens %s (%s)'):format(prompt, question.url, question.host)
    choices = { 'Open', 'Decline' }
  elseif question.type == 'approval' then
    prompt = ('%s\n%s %s'):format(prompt, question.tool, vim.json.encode(question.arguments))
    choices = vim.list_extend(vim.deepcopy(question.remember), { 'Decline' })
  elseif #question.fields == 0 then
    choices = { 'Yes', 'Decline' }
  end
  vim.ui.select(choices, { prompt = prompt }, function(choice)
    if not choice then
      return done('cancel')
    elseif choice == 'Decline' then
      return done('decline')
    elseif choice ~= 'Answer' then
      return done('accept', nil, question.type == 'approval' and choice or nil)
    end
    form(question.fields, question.server, checker(question), function(content)
      done(content and 'accept' or 'cancel', content)
    end)
  end)
end

--- Asks for what a tool requires. What is typed is JSON where it reads as such, else text.
function M.arguments(tool, done)
  local schema = tool.raw.inputSchema
  local fields = {}
  for _, name in ipairs(schema.required or {}) do
    local property = (schema.properties or {})[name] or {}
    table.insert(fields, { name = name, label = name, description = property.description, required = true })
  end
  form(fields, tool.name, function(_, _, fine)
    fine(nil)
  end, function(content)
    if not content then
      return
    end
    for name, typed in pairs(content) do
      local property = schema.properties[name] or {}
      local fine, parsed = pcall(vim.json.decode, typed)
      content[name] = fine and property.type ~= 'string' and parsed or typed
    end
    done(content)
  end)
end

return M
