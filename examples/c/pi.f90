! Computes pi by the midpoint rule. Each rank sums up a share of the intervals.
program pi
    use mpi
    implicit none
    integer :: rank, size, ierr, i, n = 1000000
    double precision :: x, part, total

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    part = 0
    do i = rank, n - 1, size
        x = (i + 0.5d0) / n
        part = part + 4 / (1 + x * x) / n
    end do
    call MPI_Reduce(part, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(a, f12.10, a, i0, a)', 'pi is ', total, ', by ', size, ' ranks'
    call MPI_Finalize(ierr)
end program
