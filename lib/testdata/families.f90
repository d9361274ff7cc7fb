! Calls of each family of the standard, with the module mpi_f08. Each rank prints "ok" or the failed checks.
module checks
    implicit none
    integer :: me, ranks, next, previous, wrong = 0
contains
    subroutine check(right, what)
        logical, intent(in) :: right
        character(*), intent(in) :: what
        if (right) return
        print '(a, i0, 2a)', 'rank ', me, ': wrong: ', what
        wrong = wrong + 1
    end subroutine
end module

module functions
    use mpi_f08
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    implicit none
    logical :: handled = .false.
contains
    ! The number with the greater magnitude.
    subroutine longer(in, inout, n, datatype)
        type(c_ptr), value :: in, inout
        integer :: n
        type(MPI_Datatype) :: datatype
        real, pointer :: a(:), b(:)
        call c_f_pointer(in, a, [n])
        call c_f_pointer(inout, b, [n])
        where (abs(a) > abs(b)) b = a
    end subroutine

    subroutine handler(comm, code)
        type(MPI_Comm) :: comm
        integer :: code
        handled = .true.
    end subroutine
end module

program families
    use mpi_f08
    use checks
    use functions
    implicit none
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, me)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    next = modulo(me + 1, ranks)
    previous = modulo(me - 1, ranks)
    call point_to_point()
    call collectives()
    call datatypes()
    call communicators()
    call others()
    call buffers()
    call empty()
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Finalize()
    if (wrong == 0) print '(a, i0, a, i0, a)', 'rank ', me, ' of ', ranks, ': ok'
    if (wrong > 0) stop 1
contains
    subroutine point_to_point()
        integer :: sent(3), got(3), n, i
        type(MPI_Status) :: status
        type(MPI_Request) :: requests(2)
        type(MPI_Message) :: message
        sent = [me, 2, 3]
        call MPI_Sendrecv(sent, 3, MPI_INTEGER, next, 1, got, 3, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, status)
        call MPI_Get_count(status, MPI_INTEGER, n)
        call check(got(1) == previous .and. n == 3 .and. status%MPI_SOURCE == previous, 'MPI_Sendrecv')
        call MPI_Irecv(got, 3, MPI_INTEGER, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, requests(1))
        call MPI_Issend(sent, 2, MPI_INTEGER, next, 2, MPI_COMM_WORLD, requests(2))
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
        call check(got(1) == previous .and. requests(1) == MPI_REQUEST_NULL, 'MPI_Issend')
        call MPI_Isend(sent, 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(1))
        call MPI_Mprobe(previous, MPI_ANY_TAG, MPI_COMM_WORLD, message, status)
        call MPI_Mrecv(got, 3, MPI_INTEGER, message, MPI_STATUS_IGNORE)
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
        call check(status%MPI_TAG == 3 .and. got(1) == previous, 'MPI_Mprobe')
        call MPI_Recv_init(got, 1, MPI_INTEGER, previous, 4, MPI_COMM_WORLD, requests(1))
        call MPI_Send_init(sent, 1, MPI_INTEGER, next, 4, MPI_COMM_WORLD, requests(2))
        do i = 1, 3
            sent(1) = 10 * i + me
            call MPI_Startall(2, requests)
            call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
            call check(got(1) == 10 * i + previous, 'MPI_Startall')
        end do
        call MPI_Request_free(requests(1))
        call MPI_Request_free(requests(2))
    end subroutine

    subroutine collectives()
        integer :: all(0:ranks - 1), other(0:ranks - 1), n, sum, i
        real :: mine(2), most(2)
        type(MPI_Op) :: op
        type(MPI_Request) :: request
        n = me
        call MPI_Bcast(n, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD)
        call check(n == ranks - 1, 'MPI_Bcast')
        call MPI_Allreduce(me, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
        call check(sum == ranks * (ranks - 1) / 2, 'MPI_Allreduce')
        all(me) = me
        call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD)
        call check(all(0) == 0 .and. all(ranks - 1) == ranks - 1, 'MPI_Allgather')
        all = [(100 * me + i, i = 0, ranks - 1)]
        call MPI_Ialltoall(all, 1, MPI_INTEGER, other, 1, MPI_INTEGER, MPI_COMM_WORLD, request)
        call MPI_Wait(request, MPI_STATUS_IGNORE)
        call check(other(ranks - 1) == 100 * (ranks - 1) + me, 'MPI_Ialltoall')
        call MPI_Scan(1, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
        call check(n == me + 1, 'MPI_Scan')
        call MPI_Op_create(longer, .true., op)
        mine = [real(-me), 0.5]
        call MPI_Allreduce(mine, most, 2, MPI_REAL, op, MPI_COMM_WORLD)
        call check(most(1) == real(1 - ranks) .and. most(2) == 0.5, 'MPI_Op_create')
        call MPI_Op_free(op)
    end subroutine

    subroutine datatypes()
        integer :: matrix(3, 4), column(3), position, n
        integer(MPI_ADDRESS_KIND) :: lb, extent
        character :: packed(100)
        type(MPI_Datatype) :: row
        matrix = reshape([(n, n = 1, 12)], [3, 4]) + 100 * me
        call MPI_Type_vector(4, 1, 3, MPI_INTEGER, row)
        call MPI_Type_commit(row)
        call MPI_Type_get_extent(row, lb, extent)
        call check(extent == 40, 'MPI_Type_get_extent')
        call MPI_Sendrecv_replace(matrix, 1, row, next, 5, previous, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call check(matrix(1, 4) == 10 + 100 * previous .and. matrix(2, 4) == 11 + 100 * me, 'MPI_Type_vector')
        call MPI_Type_free(row)
        position = 0
        call MPI_Pack(matrix(2, 1), 2, MPI_INTEGER, packed, 100, position, MPI_COMM_WORLD)
        n = position
        position = 0
        call MPI_Unpack(packed, n, position, column, 2, MPI_INTEGER, MPI_COMM_WORLD)
        call check(column(2) == 3 + 100 * me .and. position == n, 'MPI_Pack')
    end subroutine

    subroutine communicators()
        integer :: n, two(2), source, dest
        type(MPI_Comm) :: half, ring, inter
        type(MPI_Group) :: world, last
        call MPI_Comm_split(MPI_COMM_WORLD, modulo(me, 2), me, half)
        call MPI_Comm_size(half, n)
        call check(n == (ranks + 1 - modulo(me, 2)) / 2, 'MPI_Comm_split')
        if (ranks > 1) then
            call MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - modulo(me, 2), 7, inter)
            call MPI_Comm_remote_size(inter, n)
            call check(n == (ranks + modulo(me, 2)) / 2, 'MPI_Intercomm_create')
            call MPI_Comm_free(inter)
        end if
        call MPI_Comm_free(half)
        call MPI_Comm_group(MPI_COMM_WORLD, world)
        call MPI_Group_incl(world, 1, [ranks - 1], last)
        call MPI_Group_rank(last, n)
        call check(n == merge(0, MPI_UNDEFINED, me == ranks - 1), 'MPI_Group_incl')
        call MPI_Group_free(last)
        call MPI_Group_free(world)
        call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring)
        call MPI_Cart_shift(ring, 0, 1, source, dest)
        call MPI_Neighbor_allgather(me, 1, MPI_INTEGER, two, 1, MPI_INTEGER, ring)
        call check(source == previous .and. dest == next .and. two(1) == previous .and. two(2) == next, 'MPI_Neighbor_allgather')
        call MPI_Comm_free(ring)
    end subroutine

    subroutine others()
        integer :: code, class, length, key
        integer(MPI_ADDRESS_KIND) :: value
        logical :: flag
        character(MPI_MAX_ERROR_STRING) :: text
        character(10) :: some
        type(MPI_Errhandler) :: errhandler
        type(MPI_Info) :: info
        call MPI_Comm_create_errhandler(handler, errhandler)
        call MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler)
        call MPI_Send(me, 1, MPI_INTEGER, ranks, 0, MPI_COMM_WORLD, code)
        call MPI_Error_class(code, class)
        call MPI_Error_string(code, text, length)
        call check(handled .and. class == MPI_ERR_RANK .and. index(text, 'there is no rank') > 0, 'MPI_Comm_create_errhandler')
        call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
        call MPI_Errhandler_free(errhandler)
        call MPI_Info_create(info)
        call MPI_Info_set(info, 'key', 'some')
        call MPI_Info_get(info, 'key', 10, some, flag)
        call check(flag .and. some == 'some', 'MPI_Info_get')
        call MPI_Info_free(info)
        call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND)
        call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 7_MPI_ADDRESS_KIND)
        call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, flag)
        call check(flag .and. value == 7, 'MPI_Comm_get_attr')
        call MPI_Comm_delete_attr(MPI_COMM_WORLD, key)
        call MPI_Comm_free_keyval(key)
        call check(MPI_Wtime() >= 0 .and. MPI_Wtick() > 0, 'MPI_Wtime')
        call MPI_F_sync_reg(me)
        call MPI_F_sync_reg(some)
        call MPI_Sizeof(value, length)
        call check(length == 8, 'MPI_Sizeof of an address')
        call MPI_Sizeof([1d0, 2d0], length, code)
        call check(length == 8 .and. code == MPI_SUCCESS, 'MPI_Sizeof of an array')
    end subroutine

    ! Buffers allocated by the library, for all communicators and for one.
    subroutine buffers()
        use, intrinsic :: iso_c_binding, only: c_ptr, c_loc, c_associated
        integer :: got, length
        type(c_ptr) :: buffer
        type(MPI_Request) :: request
        call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0)
        call MPI_Irecv(got, 1, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, request)
        call MPI_Bsend(me, 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD)
        call MPI_Wait(request, MPI_STATUS_IGNORE)
        call MPI_Buffer_flush()
        call MPI_Buffer_detach(buffer, length)
        call check(got == previous .and. c_associated(buffer, c_loc(MPI_BUFFER_AUTOMATIC)), 'MPI_BUFFER_AUTOMATIC')
        call MPI_Comm_attach_buffer(MPI_COMM_WORLD, MPI_BUFFER_AUTOMATIC, 0)
        call MPI_Comm_detach_buffer(MPI_COMM_WORLD, buffer, length)
        call check(c_associated(buffer, c_loc(MPI_BUFFER_AUTOMATIC)), 'MPI_Comm_detach_buffer')
    end subroutine

    ! Edge cases: null datatypes with count 0, null requests, and counts that do not fit into an INTEGER.
    subroutine empty()
        integer :: counts(ranks), displacements(ranks), got(ranks)
        integer :: combiner, integers(1)
        integer(MPI_COUNT_KIND) :: n(4), large(1)
        integer(MPI_ADDRESS_KIND) :: addresses(1)
        type(MPI_Datatype) :: types(ranks), long, inside(1)
        type(MPI_Request) :: request
        logical :: flag
        counts = 0
        counts(me + 1) = 1
        displacements = 0
        types = MPI_DATATYPE_NULL
        types(me + 1) = MPI_INTEGER
        call MPI_Alltoallw([me], counts, displacements, types, got, counts, displacements, types, MPI_COMM_WORLD)
        call check(got(1) == me, 'MPI_Alltoallw with MPI_DATATYPE_NULL')
        request = MPI_REQUEST_NULL
        call MPI_Parrived(request, 0, flag)
        call check(flag, 'MPI_Parrived of MPI_REQUEST_NULL')
        call MPI_Type_contiguous(3000000000_MPI_COUNT_KIND, MPI_BYTE, long)
        call MPI_Type_get_envelope(long, n(1), n(2), n(3), n(4), combiner)
        call check(all(n == [0, 0, 1, 1]) .and. combiner == MPI_COMBINER_CONTIGUOUS, 'MPI_Type_get_envelope of a large count')
        call MPI_Type_get_contents(long, n(1), n(2), n(3), n(4), integers, addresses, large, inside)
        call check(large(1) == 3000000000_MPI_COUNT_KIND .and. inside(1) == MPI_BYTE, 'MPI_Type_get_contents of a large count')
        call MPI_Type_free(long)
    end subroutine
end program
